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
//! - **A request for the disk** counts in a turn, too, and owes nothing. While others were here within
//!   [`THINK`], it counts as what requests took of the thread lately, all in [`BESIDE`] instead of [`TURN`],
//!   and a tenant of less weight has less of that. Where the disk takes no time, a turn is all that others
//!   wait for: two hundred connections that read an image in memory, with a hundred reads a turn, left a
//!   reader 0.03 of its reads.
//! - **Over time**, what such work cost is a debt. All tenants that owe may use 1 / [`SHARE`] of the time
//!   together, in proportion to their weights; a tenant that owes more than it may ([`AHEAD`]) waits until it
//!   does not. A tenant that did little owes nothing and is served at once, whatever others owe.
//! - A command that is no I/O is one more request for the limits of its group: it takes as long as they say.
//!
//! Before a client has chosen an export its tenant is the owner of its connection, then its export's group.
//!
//! Debts are known numbers and not measured, so that they are the same on each run: a measurement would
//! charge a tenant for the time that other programs had the processor. What a request for the disk takes
//! ranges from one microsecond to tens, by how it is sent and by the machine; so that is measured.
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

/// A tenant is here for this time after its last work.
const THINK: Duration = Duration::from_ms(4);

/// The part of the thread that a tenant has in a turn for requests for the disk while others are here: about
/// what a single request takes from its arrival to its answer, if nothing else is done.
const BESIDE: Duration = Duration::from_us(10);

/// The cost of a request for the disk while no other tenant is here: a bound for what is done in a turn.
const IO: Duration = Duration::from_ns(300);

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

/// The mean of what each of some things takes.
#[derive(Debug)]
pub(crate) struct Mean {
    each: Duration,
    /// How many there were since `all` was what they had taken.
    count: u64,
    all: Duration,
}

impl Mean {
    /// The number of things over which the mean is taken.
    const WINDOW: u64 = 64;

    /// What one is taken for as long as nothing is known, and at least and at most.
    const USUAL: Duration = Duration::from_us(4);
    const LEAST: Duration = Duration::from_us(1);
    const MOST: Duration = Duration::from_us(100);

    pub(crate) const fn each(&self) -> Duration {
        self.each
    }

    pub(crate) const fn count(&mut self, more: u64) {
        self.count += more;
    }

    /// They have taken this until now, in all, if that is known.
    pub(crate) fn learn(&mut self, all: Option<Duration>) {
        if let Some(all) = all.filter(|_| self.count >= Self::WINDOW) {
            let each = all.saturating_sub(self.all) / self.count;
            self.each = (self.each * 7 + each.clamp(Self::LEAST, Self::MOST)) / 8;
            (self.count, self.all) = (0, all);
        }
    }
}

impl Default for Mean {
    fn default() -> Self {
        Self { each: Self::USUAL, count: 0, all: Duration::ZERO }
    }
}

#[derive(Debug)]
struct Account {
    weight: u64,
    /// When all that it did will be paid for.
    until: Instant,
    /// When it did anything last, in which turn, and what it used of that.
    last: Instant,
    turn: u64,
    used: Duration,
}

impl Account {
    fn is_here(&self, now: Instant) -> bool {
        now.saturating_since(self.last) < THINK
    }
}

/// What each tenant did lately. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Turns {
    accounts: BTreeMap<Tenant, Account>,
    turn: u64,
    /// The weights of the tenants that owe, as of this turn.
    owing: u64,
    /// The largest weight of those that are here, as of this turn.
    heaviest: u64,
    requests: Mean,
}

impl Turns {
    /// The engine begins another turn; `busy` is how long it has worked until now, if that is known.
    pub(crate) fn begin(&mut self, now: Instant, busy: Option<Duration>) {
        self.turn += 1;
        self.requests.learn(busy);
        if !self.accounts.is_empty() {
            self.accounts.retain(|_, account| account.until > now || account.is_here(now));
            let owing = self.accounts.values().filter(|account| account.until > now);
            self.owing = owing.map(|account| account.weight).sum();
            self.heaviest = self.accounts.values().map(|account| account.weight).max().unwrap_or_default();
        }
    }

    /// What the tenant may still use of this turn; or when to ask again: `now` means in the next turn. One
    /// that `is_new` may begin although others on its account have used up more than theirs.
    pub(crate) fn left(&self, tenant: &Tenant, now: Instant, is_new: bool) -> Result<Duration, Instant> {
        let Some(account) = self.accounts.get(tenant) else { return Ok(TURN) };
        let part = TURN * account.weight / self.heaviest.max(account.weight).max(1);
        let used = if account.turn == self.turn { account.used } else { Duration::ZERO };
        // However small its part is, it has one.
        if !used.is_zero() && used >= part {
            return Err(now);
        }
        let ahead = if is_new { BEARABLE } else { AHEAD };
        if used.is_zero() && account.until > now + ahead {
            return Err(account.until - ahead);
        }
        Ok(part.saturating_sub(used).max(Duration::from_ns(1)))
    }

    /// What a request of this tenant's for the disk uses of a turn: to read it, to hand it in, and to answer
    /// it. One `is_alone` if all that comes by this front comes one after the other.
    pub(crate) fn io(&self, tenant: &Tenant, is_alone: bool) -> Duration {
        let others = self.accounts.len() - usize::from(self.accounts.contains_key(tenant));
        match (others, is_alone) {
            (1.., _) => self.requests.each() * (TURN.as_ns() / BESIDE.as_ns()),
            (0, true) => Duration::ZERO,
            (0, false) => IO,
        }
    }

    /// The tenant, of this weight, used this much of the turn for this many requests for the disk: the
    /// scheduler and the queue bound that.
    pub(crate) fn use_up(
        &mut self,
        (tenant, weight): (&Tenant, u64),
        now: Instant,
        requests: u64,
        cost: Duration,
    ) {
        self.requests.count(requests);
        if requests > 0 {
            self.uses((tenant, weight), now, cost);
        }
    }

    fn uses(&mut self, (tenant, weight): (&Tenant, u64), now: Instant, cost: Duration) -> &mut Account {
        let turn = self.turn;
        if !self.accounts.contains_key(tenant) {
            let new = Account { weight, until: now, last: now, turn, used: Duration::ZERO };
            self.accounts.insert(tenant.clone(), new);
        }
        let account = self.accounts.get_mut(tenant).expect("it was just put there");
        if account.turn != turn {
            (account.turn, account.used) = (turn, Duration::ZERO);
        }
        account.used += cost;
        (account.weight, account.last) = (weight, now);
        account
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
        let account = self.uses((tenant, weight), now, used);
        account.until = account.until.max(now) + takes.max(at_least);
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
            turns.begin(now, None);
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
            turns.begin(now, None);
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
        turns.begin(now, None);
        turns.charge((&user(1), USUAL_WEIGHT), now, Duration::from_secs(1), Duration::ZERO);
        assert_eq!(turns.left(&user(1), now, false), Err(now), "in this turn");
        assert_eq!(turns.left(&user(2), now, false), Ok(TURN));
        turns.begin(now, None);
        assert_eq!(turns.left(&user(1), now, false), Err(now + Duration::from_secs(SHARE) - AHEAD));
        assert_eq!(turns.left(&user(2), now, false), Ok(TURN));
        assert!(turns.left(&user(1), now, true).is_err(), "more than is bearable");
        turns.charge((&user(2), USUAL_WEIGHT), now, Duration::from_ms(1) + STEP, Duration::ZERO);
        turns.begin(now, None);
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
            turns.begin(now, None);
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
            turns.begin(now, None);
            let mut count = 0;
            while turns.left(&user(1), now, false).is_ok() {
                turns.use_up((&user(1), USUAL_WEIGHT), now, 1, turns.io(&user(1), false));
                count += 1;
            }
            assert_eq!(count, TURN.as_ns() / IO.as_ns());
        }
    }

    /// The requests that a tenant has done in a turn that take `each`, beside another one, if there is one,
    /// of this weight.
    fn in_a_turn(each: Duration, beside: Option<u64>) -> u64 {
        let (mut turns, mut now, mut busy, mut count) = (Turns::default(), Instant::EPOCH, Duration::ZERO, 0);
        for turn in 0..1000 {
            turns.begin(now, Some(busy));
            let before = count;
            if let Some(weight) = beside.filter(|_| turn % 2 == 0) {
                turns.use_up((&user(2), weight), now, 1, turns.io(&user(2), false));
                (now, busy) = (now + each, busy + each);
            }
            while turns.left(&user(1), now, false).is_ok() {
                turns.use_up((&user(1), USUAL_WEIGHT), now, 1, turns.io(&user(1), false));
                count += 1;
            }
            now = now + each * (count - before);
            busy += each * (count - before);
            if turn < 999 {
                count = 0;
            }
        }
        count
    }

    #[test]
    fn a_turn_of_requests_is_short_while_others_are_here() {
        let each = Duration::from_us(10);
        assert_eq!(in_a_turn(each, None), TURN.as_ns() / IO.as_ns(), "alone");
        let beside = in_a_turn(each, Some(USUAL_WEIGHT));
        assert!((1..=2).contains(&beside), "{beside} of {each} each, {BESIDE} in a turn");
        let quick = in_a_turn(Duration::from_us(1), Some(USUAL_WEIGHT));
        assert!((8..=11).contains(&quick), "{quick} requests of 1 us");
        let light = in_a_turn(Duration::from_us(1), Some(5 * USUAL_WEIGHT));
        assert!((2..=3).contains(&light), "{light} requests of 1 us for a fifth of the weight");
    }
}
