//! Every sequence of choices, one after another.
//!
//! A test body asks for choices as if from a source of chance; [`Exhaust`] gives 0 each time at first, and
//! after each run advances the last choice that has an alternative left, like an odometer whose wheels have
//! the sizes that the body asked for.
//!
//! ```text
//! body:  a = choose(2); if a == 0 { b = choose(2) }        runs: (0,0) (0,1) (1)
//! ```
//!
//= TigerBeetle src/testing/exhaustigen.zig (the idea)

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Exhaust {
    /// What was chosen, and from how many.
    choices: Vec<(usize, usize)>,
    at: usize,
    /// How many choices this run has in common with the run before it.
    common: usize,
    started: bool,
}

impl Exhaust {
    /// Whether there is another run to make; prepares it.
    pub(crate) fn next_run(&mut self) -> bool {
        if !self.started {
            self.started = true;
            return true;
        }
        assert_eq!(
            self.at,
            self.choices.len(),
            "the body must choose alike when it is given the same answers"
        );
        self.at = 0;
        while let Some((chosen, of)) = self.choices.pop() {
            if chosen + 1 < of {
                self.common = self.choices.len();
                self.choices.push((chosen + 1, of));
                return true;
            }
        }
        false
    }

    /// A number below `n`.
    pub(crate) fn choose(&mut self, n: usize) -> usize {
        if self.at == self.choices.len() {
            self.choices.push((0, n));
        }
        let (chosen, of) = self.choices[self.at];
        assert_eq!(of, n, "the body must choose alike when it is given the same answers");
        self.at += 1;
        chosen
    }

    /// Whether the run before this one made all choices so far, too. The body is then in the same state as
    /// it was there.
    pub(crate) fn repeats(&self) -> bool {
        self.at <= self.common
    }

    /// The choices of this run, for messages.
    pub(crate) fn path(&self) -> Vec<usize> {
        self.choices.iter().map(|&(chosen, _)| chosen).collect()
    }
}
