/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * fhk_mark() and fhk_back(): the kernel's setjmp() and longjmp(), of which it exports none. Used only to leave
 * a call of the core that panicked: see guard in core.c.
 *
 * struct fhk_guard begins with eight words: the address to return to, the stack pointer there, and the six
 * registers that a function keeps.
 */
#include <linux/linkage.h>
#include <asm/unwind_hints.h>
#include <asm/asm.h>
#include <asm/nospec-branch.h>

/* long fhk_mark(struct fhk_guard *): 0; and 1 when fhk_back() comes here. */
SYM_FUNC_START(fhk_mark)
	movq	(%rsp), %rax
	movq	%rax, 0(%rdi)
	leaq	8(%rsp), %rax
	movq	%rax, 8(%rdi)
	movq	%rbx, 16(%rdi)
	movq	%rbp, 24(%rdi)
	movq	%r12, 32(%rdi)
	movq	%r13, 40(%rdi)
	movq	%r14, 48(%rdi)
	movq	%r15, 56(%rdi)
	xorl	%eax, %eax
	RET
SYM_FUNC_END(fhk_mark)

/* void fhk_back(struct fhk_guard *): does not return. */
SYM_CODE_START(fhk_back)
	UNWIND_HINT_FUNC
	ENDBR
	movq	16(%rdi), %rbx
	movq	24(%rdi), %rbp
	movq	32(%rdi), %r12
	movq	40(%rdi), %r13
	movq	48(%rdi), %r14
	movq	56(%rdi), %r15
	movq	0(%rdi), %rdx
	movq	8(%rdi), %rsp
	/* The return address is below again, as if fhk_mark() were about to return. */
	UNWIND_HINT_UNDEFINED
	pushq	%rdx
	UNWIND_HINT_FUNC
	movl	$1, %eax
	RET
SYM_CODE_END(fhk_back)
