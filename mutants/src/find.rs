//! Small changes of a source file.
//!
//! | place | changes |
//! |---|---|
//! | `a < b` and other comparisons | the neighbours: `==`, `>`, `<=` |
//! | `a && b` | `\|\|`, and the reverse |
//! | `a + b` and other arithmetic, `a & b` and other bit operators | two others |
//! | `a + 1`, `a - 1` | `a` |
//! | `a += b` and other compound assignments | as the operator |
//! | `!a`, `-a` | `a` |
//! | `pattern if guard =>` | the guard `true`, and `false` |
//! | `pattern =>` before an arm `_ =>` | the arm left out |
//! | a function's body | a plain value of its type: nothing, `true`, `0`, `None`, `Some(0)`, the default |
//!
//! Left alone: tests and what else has a `cfg`, constants, the inside of macros (so assertions, too), methods
//! `check` and `check_…` of `&self` (they are part of the tests), `Debug`, `Display` and `Default`.

use proc_macro2::LineColumn;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Item, Lit, Pat, ReturnType, Signature, Type, UnOp};

/// One change of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The file's path from the repository's root.
    pub(crate) file: String,
    /// File, line, column, and what is done: it names the change.
    pub(crate) name: String,
    pub(crate) edit: Edit,
}

/// How the text becomes another one. Numbers are offsets in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// An expression is evaluated instead of the one there.
    Instead(Range<usize>, String),
    /// A function returns at once; the offset is behind the `{` of its body.
    Return(usize, String),
    /// An arm of a `match` is left out; the offset is behind its pattern.
    NoArm(usize),
}

/// What a file has in it.
#[derive(Default, Debug)]
pub(crate) struct Found {
    pub(crate) changes: Vec<Change>,
    /// Modules that are files of their own, as paths below this module: `mod a { mod b; }` is `a/b`.
    pub(crate) modules: Vec<String>,
}

/// Finds all changes of a file.
pub(crate) fn changes(file: &str, text: &str) -> Result<Found, String> {
    let syntax = syn::parse_file(text).map_err(|e| format!("{file}: {e}"))?;
    let mut finder =
        Finder { file, text, path: Vec::new(), function: String::new(), found: Found::default() };
    finder.visit_file(&syntax);
    Ok(finder.found)
}

struct Finder<'a> {
    file: &'a str,
    text: &'a str,
    /// Modules inside the file.
    path: Vec<String>,
    /// The innermost function, or the type or trait around it.
    function: String,
    found: Found,
}

impl Finder<'_> {
    fn add(&mut self, at: LineColumn, what: &str, edit: Edit) {
        let place = if self.function.is_empty() { String::new() } else { format!(" in {}", self.function) };
        let name = format!("{}:{}:{}: {what}{place}", self.file, at.line, at.column + 1);
        self.found.changes.push(Change { file: self.file.to_owned(), name, edit });
    }

    fn text_of(&self, part: &impl Spanned) -> &str {
        &self.text[part.span().byte_range()]
    }

    fn instead(&mut self, whole: &Expr, at: LineColumn, what: &str, text: String) {
        self.add(at, what, Edit::Instead(whole.span().byte_range(), text));
    }

    /// Visits what is inside a type, trait or function.
    fn inside(&mut self, name: &str, visit: impl FnOnce(&mut Self)) {
        let outside = self.function.clone();
        self.function = if outside.is_empty() { name.to_owned() } else { format!("{outside}::{name}") };
        visit(self);
        self.function = outside;
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        if is_conditional(attributes) || is_check(signature) {
            return;
        }
        self.inside(&signature.ident.to_string(), |finder| {
            let inner = block.brace_token.span.open().byte_range().end;
            let body = finder.text[inner..block.brace_token.span.close().byte_range().start].trim();
            let body = body.to_owned();
            for value in values(&signature.output) {
                if value != body {
                    let what = format!("return {}", if value.is_empty() { "at once" } else { &value });
                    finder.add(signature.ident.span().start(), &what, Edit::Return(inner, value));
                }
            }
            finder.visit_block(block);
        });
    }

    fn binary(&mut self, whole: &Expr, binary: &syn::ExprBinary) {
        // `&&` between patterns cannot become `||`, and cannot stand in parentheses.
        if has_let(&binary.left) || has_let(&binary.right) {
            return;
        }
        let (left, right) = (self.text_of(&binary.left).to_owned(), self.text_of(&binary.right).to_owned());
        let (at, operator) = (binary.op.span().start(), self.text_of(&binary.op).to_owned());
        for other in others(&binary.op) {
            let what = format!("{operator} → {other}");
            self.instead(whole, at, &what, format!("({left}) {other} ({right})"));
        }
        if matches!(binary.op, BinOp::Add(_) | BinOp::Sub(_)) && is_one(&binary.right) {
            self.instead(whole, at, &format!("without {operator} 1"), left);
        }
    }

    fn arms(&mut self, all: &[syn::Arm]) {
        let Some(last) = all.iter().position(|arm| matches!(arm.pat, Pat::Wild(_))) else { return };
        for arm in all[..last].iter().filter(|arm| !is_conditional(&arm.attrs)) {
            if !matches!(arm.pat, Pat::Guard(_)) {
                let (span, first) =
                    (arm.pat.span(), self.text_of(&arm.pat).lines().next().unwrap_or_default());
                let what = format!("without the arm {first}");
                self.add(span.start(), &what, Edit::NoArm(span.byte_range().end));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Mod(module) if !is_conditional(&module.attrs) => {
                self.path.push(module.ident.to_string());
                match &module.content {
                    Some((_, items)) => items.iter().for_each(|item| self.visit_item(item)),
                    None => self.found.modules.push(self.path.join("/")),
                }
                self.path.pop();
            }
            Item::Fn(function) => self.function(&function.attrs, &function.sig, &function.block),
            Item::Impl(block) if !is_conditional(&block.attrs) => {
                let of = block.trait_.as_ref().and_then(|(path, _)| path.segments.last());
                let left_alone = ["Debug", "Display", "Default"];
                if !of.is_some_and(|of| left_alone.iter().any(|name| of.ident == name)) {
                    let name = self.text_of(&block.self_ty).split('<').next().unwrap_or_default().to_owned();
                    self.inside(&name, |finder| visit::visit_item_impl(finder, block));
                }
            }
            Item::Trait(block) if !is_conditional(&block.attrs) => {
                self.inside(&block.ident.to_string(), |finder| visit::visit_item_trait(finder, block));
            }
            _ => {}
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        if let syn::ImplItem::Fn(function) = item {
            self.function(&function.attrs, &function.sig, &function.block);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        if let syn::TraitItem::Fn(syn::TraitItemFn { attrs, sig, default: Some(block), .. }) = item {
            self.function(attrs, sig, block);
        }
    }

    fn visit_expr(&mut self, whole: &'ast Expr) {
        match whole {
            Expr::Const(_) => return,
            Expr::Binary(binary) => self.binary(whole, binary),
            Expr::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) => {
                let operator = self.text_of(&unary.op).to_owned();
                let operand = self.text_of(&unary.expr).to_owned();
                self.instead(whole, whole.span().start(), &format!("without {operator}"), operand);
            }
            Expr::Match(all) => self.arms(&all.arms),
            // Its length is a constant.
            Expr::Repeat(repeat) => return self.visit_expr(&repeat.expr),
            _ => {}
        }
        visit::visit_expr(self, whole);
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        // Literals in patterns are no expressions.
        let Pat::Guard(guarded) = pattern else { return };
        let at = guarded.guard.span().start();
        for value in ["true", "false"] {
            self.instead(&guarded.guard, at, &format!("guard → {value}"), value.to_owned());
        }
        self.visit_expr(&guarded.guard);
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        match statement {
            syn::Stmt::Local(local) if is_conditional(&local.attrs) => {}
            syn::Stmt::Expr(expression, _) if is_conditional(attributes(expression)) => {}
            _ => visit::visit_stmt(self, statement),
        }
    }

    // Lengths of arrays and arguments of types are constants.
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn is_conditional(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| ["cfg", "cfg_attr", "test"].iter().any(|name| a.path().is_ident(name)))
}

/// The attributes of expressions that have some: a block `#[cfg(…)] { … }`.
fn attributes(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::Block(block) => &block.attrs,
        Expr::Call(call) => &call.attrs,
        Expr::MethodCall(call) => &call.attrs,
        _ => &[],
    }
}

/// Whether a method looks whether its object is sound, for tests.
fn is_check(signature: &Signature) -> bool {
    let name = signature.ident.to_string();
    let looks = signature.receiver().is_some_and(|me| {
        matches!(&me.kind, syn::ReceiverKind::Reference(_, _, None)) && me.mutability.is_none()
    });
    looks && (name == "check" || name.starts_with("check_"))
}

fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn is_one(expression: &Expr) -> bool {
    matches!(expression, Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. }) if n.base10_digits() == "1")
}

/// The operators that are put in place of one.
fn others(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">", "<"],
        BinOp::Ge(_) => &["<", ">"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["%=", "*="],
        BinOp::RemAssign(_) => &["/=", "+="],
        BinOp::BitAndAssign(_) => &["|=", "^="],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::BitXorAssign(_) => &["|=", "&="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

/// Plain values of what a function returns; an empty one is "nothing".
fn values(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec![String::new()],
        ReturnType::Type(_, of) => values_of(of),
    }
}

fn values_of(of: &Type) -> Vec<String> {
    let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    match of {
        Type::Paren(inner) => values_of(&inner.elem),
        Type::Tuple(tuple) if tuple.elems.is_empty() => texts(&["()"]),
        Type::Tuple(_) | Type::Array(_) => texts(&["Default::default()"]),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return Vec::new() };
            let first_argument = || match &last.arguments {
                syn::PathArguments::AngleBracketed(all) => {
                    all.args.iter().find_map(|argument| match argument {
                        syn::GenericArgument::Type(of) => Some(values_of(of)),
                        _ => None,
                    })
                }
                _ => None,
            };
            let within = |name: &str| {
                let some = first_argument().unwrap_or_default().into_iter();
                some.map(|value| format!("{name}({value})")).collect::<Vec<_>>()
            };
            match last.ident.to_string().as_str() {
                "bool" => texts(&["true", "false"]),
                "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => texts(&["0", "1"]),
                "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => texts(&["0", "1", "-1"]),
                "f32" | "f64" => texts(&["0.0", "1.0", "-1.0"]),
                "Option" => [texts(&["None"]), within("Some")].concat(),
                "Result" => within("Ok"),
                _ => texts(&["Default::default()"]),
            }
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done, without file and place.
    fn found(text: &str) -> Vec<String> {
        let changes = changes("a.rs", text).unwrap().changes;
        changes.iter().map(|change| change.name.splitn(4, ':').nth(3).unwrap().trim().to_owned()).collect()
    }

    #[test]
    fn a_name_says_where_the_operator_is() {
        let all =
            changes("a.rs", "impl A {\n    fn b(&self) {\n        é(x == y);\n    }\n}\n").unwrap().changes;
        let names: Vec<&str> = all.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["a.rs:2:8: return at once in A::b", "a.rs:3:13: == → != in A::b"]);
    }

    #[test]
    fn operators_are_exchanged_for_their_neighbours() {
        let text = "fn f() -> ! { a <= b; a && !b; a - 1; a |= -c; }";
        let without_place: Vec<String> =
            found(text).iter().map(|what| what.trim_end_matches(" in f").to_owned()).collect();
        assert_eq!(
            without_place,
            [
                "<= → >",
                "<= → <",
                "&& → ||",
                "without !",
                "- → +",
                "- → /",
                "without - 1",
                "|= → &=",
                "|= → ^=",
                "without -"
            ]
        );
    }

    #[test]
    fn a_body_becomes_a_plain_value_of_its_type_unless_it_is_one() {
        let values = |output: &str, body: &str| {
            let all = found(&format!("fn f() {output} {{ {body} }}"));
            all.iter().map(|what| what.trim_end_matches(" in f").replace("return ", "")).collect::<Vec<_>>()
        };
        assert_eq!(values("", "g();"), ["at once"]);
        assert_eq!(values("", ""), [""; 0]);
        assert_eq!(values("-> bool", "true"), ["false"]);
        assert_eq!(values("-> Option<u8>", "g()"), ["None", "Some(0)", "Some(1)"]);
        assert_eq!(values("-> Result<(), E>", "g()"), ["Ok(())"]);
        assert_eq!(values("-> Sector", "g()"), ["Default::default()"]);
        assert_eq!(values("-> &u8", "g()"), [""; 0]);
        assert_eq!(values("-> impl Iterator<Item = u8>", "g()"), [""; 0]);
    }

    #[test]
    fn an_arm_is_left_out_only_where_another_takes_its_values() {
        assert_eq!(found("fn f() -> ! { match x { A => b, C if d => e, _ => g } }").len(), 3);
        assert_eq!(found("fn f() -> ! { match x { A => b, C => e } }"), [""; 0]);
    }

    #[test]
    fn a_condition_with_patterns_keeps_its_and() {
        let text = "fn f() -> ! { if let Some(a) = b && a == c && d { g } }";
        assert_eq!(found(text), ["== → != in f"]);
    }

    #[test]
    fn what_is_no_code_of_the_program_is_left_alone() {
        for text in [
            "const A: u8 = 1 + 2; static B: u8 = 1 + 2; struct C([u8; 1 + 2]); enum D { E = 1 + 2 }",
            "#[cfg(test)] mod tests { fn f() { g(1 + 2); } }",
            "#[test] fn f() { g(1 + 2); }",
            "fn f() -> ! { #[cfg(debug_assertions)] { g(1 + 2); } }",
            "fn f() -> ! { assert!(a == b); [0; 1 + 2]; const { 1 + 2 }; }",
            "impl A { fn check(&self) { g(1 + 2); } fn check_all(&self) { g(1 + 2); } }",
            "impl fmt::Display for A { fn fmt(&self) -> bool { a == b } }",
            "impl Default for A { fn default() -> Self { Self(1 + 2) } }",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
        assert_eq!(found("impl A { fn check_raise(&mut self) { g(); } }").len(), 1);
    }

    #[test]
    fn modules_in_files_of_their_own_are_named_and_those_of_tests_are_not() {
        let text = "mod a; mod b { mod c; } #[cfg(test)] mod tests;";
        assert_eq!(changes("a.rs", text).unwrap().modules, ["a", "b/c"]);
    }
}
