/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Calls of the core that can be left in their middle, after a panic: see guard in core.c.
 *
 * fhk_guarded_fh_insert(...) calls fh_insert(...) and returns its answer, and likewise for the other functions
 * that guard.h names. Before the call it keeps the registers that a function has to keep on the stack,
 * and where that is in fhk_guard; so a call in a call, such as that of an interrupt, finds its way back, too. The
 * arguments are in registers, and nothing here touches those.
 *
 * fhk_leave() goes back to the innermost of these calls, which then returns FHK_LEFT.
 */
#include <linux/linkage.h>
#include <asm/unwind_hints.h>
#include <asm/asm.h>
#include <asm/percpu.h>
#include <asm/nospec-branch.h>
#include "guard.h"

/* What a guarded call put on the stack comes back. */
.macro restore
	popq	%rcx
	movq	%rcx, PER_CPU_VAR(fhk_guard)
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
.endm

.macro guarded name
SYM_FUNC_START(fhk_guarded_\name)
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	PER_CPU_VAR(fhk_guard), %rax
	pushq	%rax
	movq	%rsp, PER_CPU_VAR(fhk_guard)
	call	\name
	restore
	RET
SYM_FUNC_END(fhk_guarded_\name)
.endm

#define GUARDED(name) guarded name
FHK_GUARDED

/* void fhk_leave(void): does not return. */
SYM_CODE_START(fhk_leave)
	UNWIND_HINT_FUNC
	ENDBR
	movq	PER_CPU_VAR(fhk_guard), %rsp
	UNWIND_HINT_UNDEFINED
	restore
	UNWIND_HINT_FUNC
	movl	$FHK_LEFT, %eax
	RET
SYM_CODE_END(fhk_leave)
