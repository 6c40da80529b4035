//! Turns of tenants: a bound for the work of the engine's thread that is no I/O of the disk.
//!
//! The scheduler divides the disk, and what a client asks of the disk is bounded by its place in the queue.
//! Options, unknown commands, requests for 0 bytes and refused requests never come there, and yet each takes
//! time of the one thread that serves all tenants. So a front asks here before it looks at input, and says
//! here what that cost:
//!
//! - **In a turn** of the engine, a tenant has a part of the thread ([`TURN`]). What a connection has beyond
//!   that stays in its input, which is not read meanwhile, so that its socket fills up; the connection waits
//!   in a [`Line`], round robin over tenants and, inside each, over connections. Between two turns the disk,
//!   completions and other tenants are served.
//! - **Over time**, what such work cost is a debt. All tenants that owe may use 1 / [`SHARE`] of the time
//!   together, in proportion to their weights; a tenant that owes more than it may ([`AHEAD`]) waits until it
//!   does not. A tenant that did little owes nothing and is served at once, whatever others owe.
//! - A command that is no I/O is one more request for the limits of its group: it takes as long as they say.
//!
//! Before a client has chosen an export its tenant is the owner of its connection, then its export's group.
//!
//! Costs are known numbers and not measured, so that they are the same on each run: a measurement would
//! charge a tenant for the time that other programs had the processor.
//!
//! What it does not do: divide the disk, or know groups. A tenant that owes alone has all of that part of the
//! time, whatever its weight.

use crate::peer::Owner;
use fairhead_core::units::{Duration, GroupId, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The part of the engine's thread that a tenant has in a turn.
pub(crate) const TURN: Duration = Duration::from_us(30);

/// Work that is no I/O may take one part in this many of the engine's time. An honest client at depth 1 loses
/// about as much.
const SHARE: u64 = 32;

/// How far a tenant may be ahead of its share: what a usual client asks for at its start is done at once.
const AHEAD: Duration = Duration::from_ms(32);

/// Further connections of a tenant that owes may do their first steps as long as it owes no more than this.
const BEARABLE: Duration = Duration::from_ms(128);

/// The cost of a request for the disk: to read it, to hand it in, and to answer it.
pub(crate) const IO: Duration = Duration::from_ns(300);
/// The cost of a step that is no I/O, and of a message with such steps, in which the socket is read, the
/// answers are sent and the client is woken.
pub(crate) const STEP: Duration = Duration::from_us(2);
pub(crate) const MESSAGE: Duration = Duration::from_us(4);

/// On whose account work is done.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Tenant {
    /// A client that has not chosen an export.
    Owner(Owner),
    Group(GroupId),
}

/// The weight of a tenant without a group.
pub(crate) const USUAL_WEIGHT: u64 = 100;

#[derive(Debug)]
struct Account {
    weight: u64,
    /// When all that it did will be paid for.
    until: Instant,
    /// The last turn in which it did anything, and what it used of that.
    turn: u64,
    used: Duration,
}

/// What each tenant did lately. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Turns {
    accounts: BTreeMap<Tenant, Account>,
    turn: u64,
    /// The weights of the tenants that owe, as of this turn.
    owing: u64,
}

impl Turns {
    /// The engine begins another turn.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.turn += 1;
        if !self.accounts.is_empty() {
            self.accounts.retain(|_, account| account.until > now);
            self.owing = self.accounts.values().map(|account| account.weight).sum();
        }
    }

    /// What the tenant may still use of this turn; or when to ask again: `now` means in the next turn. One
    /// that `is_new` may begin although others on its account have used up more than theirs.
    pub(crate) fn left(&self, tenant: &Tenant, now: Instant, is_new: bool) -> Result<Duration, Instant> {
        let Some(account) = self.accounts.get(tenant) else { return Ok(TURN) };
        let used = if account.turn == self.turn { account.used } else { Duration::ZERO };
        if used >= TURN {
            return Err(now);
        }
        let ahead = if is_new { BEARABLE } else { AHEAD };
        if used.is_zero() && account.until > now + ahead {
            return Err(account.until - ahead);
        }
        Ok(TURN - used)
    }

    /// The tenant used this much of the turn, for I/O: the scheduler and the queue bound that.
    pub(crate) fn use_up(&mut self, tenant: &Tenant, now: Instant, cost: Duration) {
        if !cost.is_zero() {
            let turn = self.turn;
            let account = self.account(tenant, now);
            if account.turn != turn {
                (account.turn, account.used) = (turn, Duration::ZERO);
            }
            account.used += cost;
        }
    }

    /// The tenant, of this weight, used this much of the turn for work that is no I/O, and owes it; in no
    /// less time than `at_least`, which is what limits say.
    pub(crate) fn charge(
        &mut self,
        (tenant, weight): (&Tenant, u64),
        now: Instant,
        cost: Duration,
        at_least: Duration,
    ) {
        let takes = cost.as_ns().saturating_mul(SHARE * self.owing.max(weight)) / weight.max(1);
        let takes = Duration::from_ns(takes);
        // Of what is limited, one at a time.
        let used = if at_least > takes { TURN } else { cost };
        self.use_up(tenant, now, used);
        let account = self.account(tenant, now);
        account.weight = weight;
        account.until = account.until.max(now) + takes.max(at_least);
    }

    fn account(&mut self, tenant: &Tenant, now: Instant) -> &mut Account {
        if !self.accounts.contains_key(tenant) {
            let new = Account { weight: USUAL_WEIGHT, until: now, turn: self.turn, used: Duration::ZERO };
            self.accounts.insert(tenant.clone(), new);
        }
        self.accounts.get_mut(tenant).expect("it was just put there")
    }
}

/// Connections that have input and wait for their tenants' turns.
#[derive(Debug, Default)]
pub(crate) struct Line {
    tenants: VecDeque<InLine>,
}

#[derive(Debug)]
struct InLine {
    tenant: Tenant,
    /// When to ask again.
    at: Instant,
    who: VecDeque<usize>,
}

impl Line {
    /// Puts a connection at the end of its tenant's; not before `at` it is worth asking.
    pub(crate) fn push(&mut self, tenant: &Tenant, who: usize, at: Instant) {
        match self.tenants.iter_mut().find(|t| t.tenant == *tenant) {
            Some(waiting) => {
                waiting.at = at;
                waiting.who.push_back(who);
            }
            None => {
                let who = VecDeque::from([who]);
                self.tenants.push_back(InLine { tenant: tenant.clone(), at, who });
            }
        }
    }

    /// The next connection whose tenant may do anything; the tenant goes to the end.
    pub(crate) fn next(&mut self, turns: &Turns, now: Instant) -> Option<usize> {
        for _ in 0..self.tenants.len() {
            let mut waiting = self.tenants.pop_front()?;
            let who = match turns.left(&waiting.tenant, now, false) {
                Ok(_) => waiting.who.pop_front(),
                Err(at) => {
                    waiting.at = at;
                    None
                }
            };
            if !waiting.who.is_empty() {
                self.tenants.push_back(waiting);
            }
            if who.is_some() {
                return who;
            }
        }
        None
    }

    /// When to ask for the next one.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.tenants.iter().map(|t| t.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(n: u32) -> Tenant {
        Tenant::Owner(Owner::User(n))
    }

    /// Connections that always have more work wait in line; turns of 50 µs each follow on each other. Returns
    /// what each did, in the order of turns.
    fn run(floods: &[(Tenant, usize)], turns_max: u64) -> Vec<Vec<usize>> {
        let (mut turns, mut line, mut done) = (Turns::default(), Line::default(), Vec::new());
        floods.iter().for_each(|(tenant, who)| line.push(tenant, *who, Instant::EPOCH));
        for turn in 0..turns_max {
            let now = Instant::EPOCH + Duration::from_us(50) * turn;
            turns.begin(now);
            let mut did = Vec::new();
            while let Some(who) = line.next(&turns, now) {
                let tenant = &floods[who].0;
                did.push(who);
                turns.charge((tenant, USUAL_WEIGHT), now, STEP, Duration::ZERO);
                line.push(tenant, who, now);
            }
            done.push(did);
        }
        done
    }

    #[test]
    fn a_turn_is_bounded_for_each_tenant_and_goes_round() {
        let floods = [(user(1), 0), (user(1), 1), (user(1), 2), (user(2), 3)];
        let done = run(&floods, 4);
        let steps = (TURN.as_ns() / STEP.as_ns()) as usize;
        for did in &done {
            assert_eq!(did.len(), 2 * steps, "{did:?}");
            assert_eq!(did.iter().filter(|&&who| who == 3).count(), steps, "a tenant, however few it sends");
            assert!(did.chunks(2).all(|pair| (pair[0] == 3) != (pair[1] == 3)), "in turn: {did:?}");
        }
        for who in 0..3 {
            let of_it = done.iter().flatten().filter(|&&w| w == who).count();
            assert_eq!(of_it, 4 * steps / 3, "round robin inside a tenant");
        }
    }

    #[test]
    fn what_tenants_may_use_over_time_is_a_part_of_it() {
        for tenants in [1_u32, 4, 20] {
            let floods: Vec<_> = (0..tenants).map(|n| (user(n), n as usize)).collect();
            let turns = 100_000;
            let steps = run(&floods, turns).iter().flatten().count() as u64;
            let share = turns * 50_000 / SHARE / STEP.as_ns();
            // Each may be ahead once.
            let at_once = u64::from(tenants) * (AHEAD.as_ns() / SHARE + 2 * TURN.as_ns()) / STEP.as_ns();
            assert!(steps >= share * 9 / 10, "{tenants} tenants: {steps} of {share} steps");
            assert!(steps <= share + at_once, "{tenants} tenants: {steps} of {share} steps");
        }
    }

    #[test]
    fn tenants_that_owe_are_served_by_their_weights() {
        let (mut turns, mut line, mut done) = (Turns::default(), Line::default(), [0_u64; 2]);
        let weights = [100, 300];
        let tenants = [Tenant::Group(GroupId(1)), Tenant::Group(GroupId(2))];
        tenants.iter().enumerate().for_each(|(who, tenant)| line.push(tenant, who, Instant::EPOCH));
        for turn in 0..400_000 {
            let now = Instant::EPOCH + Duration::from_us(50) * turn;
            turns.begin(now);
            while let Some(who) = line.next(&turns, now) {
                done[who] += 1;
                turns.charge((&tenants[who], weights[who]), now, STEP, Duration::ZERO);
                line.push(&tenants[who], who, now);
            }
        }
        let [light, heavy] = done;
        assert!((27 * light..=33 * light).contains(&(10 * heavy)), "{light} and {heavy} steps, 100 : 300");
    }

    #[test]
    fn a_tenant_that_did_little_is_served_whatever_others_owe() {
        let mut turns = Turns::default();
        let now = Instant::EPOCH;
        turns.begin(now);
        turns.charge((&user(1), USUAL_WEIGHT), now, Duration::from_secs(1), Duration::ZERO);
        assert_eq!(turns.left(&user(1), now, false), Err(now), "in this turn");
        assert_eq!(turns.left(&user(2), now, false), Ok(TURN));
        turns.begin(now);
        assert_eq!(turns.left(&user(1), now, false), Err(now + Duration::from_secs(SHARE) - AHEAD));
        assert_eq!(turns.left(&user(2), now, false), Ok(TURN));
        assert!(turns.left(&user(1), now, true).is_err(), "more than is bearable");
        turns.charge((&user(2), USUAL_WEIGHT), now, Duration::from_ms(1) + STEP, Duration::ZERO);
        turns.begin(now);
        assert!(turns.left(&user(2), now, false).is_err());
        assert_eq!(turns.left(&user(2), now, true), Ok(TURN), "a new connection of it may begin");
    }

    #[test]
    fn a_limit_is_one_for_commands_that_are_no_io_too() {
        let (mut turns, mut line, mut done) = (Turns::default(), Line::default(), 0);
        let tenant = Tenant::Group(GroupId(3));
        line.push(&tenant, 0, Instant::EPOCH);
        for ms in 0..10_000 {
            let now = Instant::EPOCH + Duration::from_ms(ms);
            turns.begin(now);
            while line.next(&turns, now).is_some() {
                done += 1;
                turns.charge((&tenant, USUAL_WEIGHT), now, STEP, Duration::from_ms(100));
                line.push(&tenant, 0, now);
            }
        }
        assert!((100..=102).contains(&done), "{done} commands in 10 s at 10 a second");
    }

    #[test]
    fn io_is_bounded_in_a_turn_and_owes_nothing() {
        let mut turns = Turns::default();
        let now = Instant::EPOCH;
        for _ in 0..1000 {
            turns.begin(now);
            let mut count = 0;
            while turns.left(&user(1), now, false).is_ok() {
                turns.use_up(&user(1), now, IO);
                count += 1;
            }
            assert_eq!(count, TURN.as_ns() / IO.as_ns());
        }
    }
}
