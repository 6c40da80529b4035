//! The protocol, from the server's side of one connection: bytes in, requests out. It does no I/O and keeps
//! no data.
//!
//! ```text
//!   greeting ─► ClientFlags ─► Options ⟲ ─GO─► Commands ⟲ ─DISC─► Over
//!                                                 │  ▲
//!                                                 ▼  │  write: so many bytes of data
//!                                                Data
//! ```
//!
//! [`Session::step`] looks at what has come in, takes as much of it as makes one [`Step`], and says how much
//! that was. What it has to say itself, it puts into `out`. How the bytes were cut into pieces on the way
//! changes nothing. It asks for at most [`INPUT_MAX`] bytes at a time; data of writes pass by, and the driver
//! may take them elsewhere ([`Session::data_left`]).
//!
//! The requests of a client are checked here: what comes out lies inside the export, is aligned, allowed, and
//! understood. A refused request is answered here, after its data have been skipped. A client that breaks the
//! protocol itself, so that the start of its next request cannot be found, is dropped.
//!
//! TLS is the driver's: this says when it begins ([`Step::StartTls`]), and forgets what was negotiated
//! before.
//!
//! With extended headers, lengths have 64 bits, and every reply has a header of the long kind. Reads and
//! writes stay as short as without them.
//!
//! What it does not do: old-style handshake, `RESIZE`, payloads of questions for block status. Options that
//! it does not know are refused politely.

use super::tls::TlsMode;
use super::wire::{self, Put, Take, can, chunk, command, flag, info, option, reply};

/// The most bytes that one step needs.
pub const INPUT_MAX: usize = OPTION_HEADER + OPTION_MAX;

/// The longest data of an option; a name has 4096 bytes at most.
const OPTION_MAX: usize = 16 << 10;
const NAME_MAX: usize = 4096;
const OPTION_HEADER: usize = 16;
pub(super) const REQUEST_HEADER: usize = 28;
const EXTENDED_HEADER: usize = 32;

/// The most that is read or written at a time: what clients take for granted.
//= nbd doc/proto.md Block size constraints
pub const TRANSFER_MAX: u32 = 32 << 20;

/// A metadata context: its name, the number by which it goes, and what it says of data and of a hole.
struct Context {
    name: &'static [u8],
    id: u32,
    data: u32,
    hole: u32,
}

/// The metadata contexts that there are. An image is one layer deep: what is in it is allocated there, and a
/// hole nowhere.
//= nbd doc/proto.md#metadata-querying
//= qemu docs/interop/nbd.rst
const CONTEXTS: [Context; 2] = [
    Context { name: b"base:allocation", id: 1, data: 0, hole: 3 },
    Context { name: b"qemu:allocation-depth", id: 2, data: 1, hole: 0 },
];

/// The facts about an export that a client learns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// A description for users.
    pub description: String,
    /// Its size in bytes.
    pub size: u64,
    /// Writes that end behind this byte are refused: the size, or less if the image was made shorter after
    /// the client had learned the size.
    pub write_end: u64,
    /// Offsets and lengths are multiples of this power of two.
    pub block_size_min: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether there is a head that moves.
    pub rotational: bool,
    /// Whether zeroing takes no longer than punching a hole.
    pub fast_zero: bool,
}

impl Facts {
    fn flags(&self) -> u16 {
        let always = can::HAS_FLAGS | can::FLUSH | can::FUA | can::DF | can::MULTI_CONN;
        let writes =
            if self.read_only { can::READ_ONLY } else { can::TRIM | can::WRITE_ZEROES | can::FAST_ZERO };
        always | writes | if self.rotational { can::ROTATIONAL } else { 0 }
    }
}

/// The errors of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(missing_docs, reason = "the usual names")]
pub enum Errno {
    Perm = 1,
    Io = 5,
    NoMem = 12,
    Inval = 22,
    NoSpc = 28,
    Overflow = 75,
    NotSup = 95,
    Shutdown = 108,
}

impl From<crate::Errno> for Errno {
    fn from(errno: crate::Errno) -> Self {
        match errno.0 {
            libc::EPERM | libc::EACCES | libc::EROFS => Self::Perm,
            libc::ENOMEM => Self::NoMem,
            libc::EINVAL => Self::Inval,
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Self::NoSpc,
            libc::EOPNOTSUPP => Self::NotSup,
            libc::ESHUTDOWN => Self::Shutdown,
            _ => Self::Io,
        }
    }
}

/// The command of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Bytes.
    Read,
    /// Its data follow.
    Write,
    /// Make stable what was answered before.
    Flush,
    /// No longer needed.
    Trim,
    /// Reads as zeros.
    Zero {
        /// It must not become a hole.
        no_hole: bool,
    },
    /// Report where the range has holes.
    Status {
        /// One extent is enough.
        one: bool,
    },
}

/// Something that a client asks for, checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The client's name for it.
    pub cookie: u64,
    /// What.
    pub command: Command,
    /// The first byte.
    pub offset: u64,
    /// How many bytes; 0 only for flushes.
    pub len: u64,
    /// Answered when it is stable.
    pub fua: bool,
}

/// The result of some bytes of input.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Too few to say.
    Wait,
    /// The bytes are handled; there may be something to send.
    Next,
    /// The client has chosen this export; requests follow.
    Begin(usize),
    /// The client begins TLS, as soon as what there is to send has been sent. What follows is encrypted; if
    /// anything that is not has come behind these bytes, the connection is to be dropped.
    StartTls,
    /// A request. If it is a write, data follow.
    Request(Request),
    /// The bytes that were taken are data of the last write.
    Data,
    /// The client goes: finish what it asked for, send what there is, close.
    Leave,
    /// It breaks the protocol: close.
    Drop(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    ClientFlags,
    Options,
    /// Data of an option that is too long pass by.
    SkipOption {
        option: u32,
        left: u64,
    },
    Commands,
    Data {
        left: u32,
    },
    /// Data of a write that is refused pass by.
    SkipData {
        left: u32,
        cookie: u64,
        offset: u64,
        errno: Errno,
    },
    Over,
}

/// One connection from the first byte on, without the connection: bytes come in, steps and bytes to send come
/// out.
#[derive(Clone, Debug)]
pub struct Session {
    phase: Phase,
    is_fixed: bool,
    no_zeroes: bool,
    structured: bool,
    extended: bool,
    /// Whether the client can, or has to, begin TLS before it does anything else.
    tls: TlsMode,
    is_secure: bool,
    /// By export; an export without an entry is open.
    access: Vec<Access>,
    /// The export for which [`CONTEXTS`] were chosen, and which.
    contexts: Option<(usize, [bool; CONTEXTS.len()])>,
    export: Option<usize>,
}

/// Whether a client may choose an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It may.
    Open,
    /// It may not now: the export has as many connections as it may have.
    Full,
    /// It may not, and does not learn that there is such an export.
    Hidden,
}

/// The beginning of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    bytes: [u8; 40],
    len: u8,
}

impl Head {
    const EMPTY: Self = Self { bytes: [0; 40], len: 0 };

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Put for Head {
    fn put(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// A connection that has just been made. The [greeting](Self::greeting) is to be sent.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            phase: Phase::ClientFlags,
            is_fixed: false,
            no_zeroes: false,
            structured: false,
            extended: false,
            tls: TlsMode::Off,
            is_secure: false,
            access: Vec::new(),
            contexts: None,
            export: None,
        }
    }

    /// The client can, or has to, use TLS.
    #[must_use]
    pub const fn with_tls(mut self, mode: TlsMode) -> Self {
        self.tls = mode;
        self
    }

    /// Sets which exports the client may choose, in their order. At first all.
    pub fn set_access(&mut self, access: Vec<Access>) {
        self.access = access;
    }

    fn access(&self, export: usize) -> Access {
        self.access.get(export).copied().unwrap_or(Access::Open)
    }

    /// The exports that the client may know of, and their numbers.
    fn visible<'a>(&self, exports: &'a [Facts]) -> impl Iterator<Item = (usize, &'a Facts)> {
        exports.iter().enumerate().filter(|&(i, _)| self.access(i) != Access::Hidden)
    }

    /// The export of that name; the empty name is that of the only one.
    fn find(&self, exports: &[Facts], name: &[u8]) -> Option<usize> {
        let exact = self.visible(exports).find(|(_, e)| e.name.as_bytes() == name);
        let mut all = self.visible(exports);
        let found = exact
            .or_else(|| if name.is_empty() { all.next().filter(|_| all.next().is_none()) } else { None });
        found.map(|(i, _)| i)
    }

    /// Returns the first bytes that a server sends.
    #[must_use]
    pub fn greeting() -> Vec<u8> {
        let mut out = Vec::new();
        out.u64(wire::GREETING);
        out.u64(wire::OPTION);
        out.u16(wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        out
    }

    /// The export that the client has chosen.
    #[must_use]
    pub const fn export(&self) -> Option<usize> {
        self.export
    }

    /// The bytes of the last write's data that are still to come.
    #[must_use]
    pub const fn data_left(&self) -> u32 {
        match self.phase {
            Phase::Data { left } => left,
            _ => 0,
        }
    }

    /// Notes that the driver has received `len` bytes of data without [`Self::step`].
    ///
    /// # Panics
    /// If these are more than there are.
    pub fn data_came(&mut self, len: u32) {
        let left = self.data_left();
        assert!(len <= left, "{len} bytes of data of {left}");
        if left > 0 {
            self.phase = if len == left { Phase::Commands } else { Phase::Data { left: left - len } };
        }
    }

    /// Handles the next bytes of input. Returns how many of them were taken, and what the driver has to do.
    pub fn step(&mut self, exports: &[Facts], input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let available = u32::try_from(input.len()).unwrap_or(u32::MAX);
        match self.phase {
            Phase::ClientFlags => self.client_flags(input),
            Phase::Options => self.option(exports, input, out),
            Phase::SkipOption { option, left } => {
                let taken = left.min(u64::from(available));
                self.phase = Phase::SkipOption { option, left: left - taken };
                if taken == left {
                    self.phase = Phase::Options;
                    refuse(out, option, reply::TOO_BIG, "more than anybody needs");
                }
                (taken as usize, if taken == 0 && left > 0 { Step::Wait } else { Step::Next })
            }
            Phase::Commands => self.command(exports, input, out),
            Phase::Data { .. } if available == 0 => (0, Step::Wait),
            Phase::Data { left } => {
                let taken = left.min(available);
                self.data_came(taken);
                (taken as usize, Step::Data)
            }
            Phase::SkipData { .. } if available == 0 => (0, Step::Wait),
            Phase::SkipData { left, cookie, offset, errno } => {
                let taken = left.min(available);
                self.phase = Phase::SkipData { left: left - taken, cookie, offset, errno };
                if taken == left {
                    self.phase = Phase::Commands;
                    let head = if self.extended {
                        extended_error(cookie, offset, errno)
                    } else {
                        simple(cookie, Err(errno))
                    };
                    out.put(head.bytes());
                }
                (taken as usize, Step::Next)
            }
            Phase::Over => (0, Step::Wait),
        }
    }

    fn drop(&mut self, why: &'static str) -> (usize, Step) {
        self.phase = Phase::Over;
        (0, Step::Drop(why))
    }
}

/// The handshake.
impl Session {
    fn client_flags(&mut self, input: &[u8]) -> (usize, Step) {
        let Some(flags) = Take(input).u32() else { return (0, Step::Wait) };
        let known = u32::from(wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        if flags & !known != 0 {
            return self.drop("client flags that the server did not offer");
        }
        self.is_fixed = flags & u32::from(wire::FIXED_NEWSTYLE) != 0;
        self.no_zeroes = flags & u32::from(wire::NO_ZEROES) != 0;
        self.phase = Phase::Options;
        (4, Step::Next)
    }

    fn option(&mut self, exports: &[Facts], input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let mut take = Take(input);
        let (Some(magic), Some(option), Some(len)) = (take.u64(), take.u32(), take.u32()) else {
            // What is wrong from the start need not wait for the rest.
            let magic = wire::OPTION.to_be_bytes();
            let seen = input.len().min(magic.len());
            let is_wrong = input[..seen] != magic[..seen];
            return if is_wrong { self.drop("no option") } else { (0, Step::Wait) };
        };
        if magic != wire::OPTION {
            return self.drop("no option");
        }
        if !self.is_fixed && option != option::EXPORT_NAME {
            return self.drop("options without fixed newstyle");
        }
        let len = len as usize;
        if len > OPTION_MAX {
            if option == option::EXPORT_NAME {
                return self.drop("a name that is too long");
            }
            self.phase = Phase::SkipOption { option, left: len as u64 };
            return (OPTION_HEADER, Step::Next);
        }
        let Some(data) = take.bytes(len) else { return (0, Step::Wait) };
        let step = self.negotiate(exports, option, data, out);
        (if matches!(step, Step::Drop(_)) { 0 } else { OPTION_HEADER + len }, step)
    }

    fn negotiate(&mut self, exports: &[Facts], option: u32, data: &[u8], out: &mut Vec<u8>) -> Step {
        let is_needed = self.tls == TlsMode::Require && !self.is_secure;
        match option {
            option::STARTTLS => return self.start_tls(data, out),
            option::EXPORT_NAME if is_needed => return self.drop("an export without TLS").1,
            option if is_needed && option != option::ABORT => {
                refuse(out, option, reply::TLS_NEEDED, "TLS is required");
            }
            option::EXPORT_NAME => return self.export_name(exports, data, out),
            option::ABORT => {
                answer(out, option, reply::ACK, &[]);
                self.phase = Phase::Over;
                return Step::Leave;
            }
            option::LIST if data.is_empty() => {
                for (_, e) in self.visible(exports) {
                    let mut server = Vec::new();
                    server.u32(e.name.len() as u32);
                    server.put(e.name.as_bytes());
                    server.put(e.description.as_bytes());
                    answer(out, option, reply::SERVER, &server);
                }
                answer(out, option, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() && self.extended => {
                refuse(out, option, reply::EXT_HEADER_REQD, "extended headers imply them");
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                answer(out, option, reply::ACK, &[]);
            }
            option::EXTENDED_HEADERS if data.is_empty() && !self.extended => {
                (self.structured, self.extended) = (true, true);
                answer(out, option, reply::ACK, &[]);
            }
            option::EXTENDED_HEADERS if data.is_empty() => {
                refuse(out, option, reply::INVALID, "they are in use already");
            }
            option::LIST | option::STRUCTURED_REPLY | option::EXTENDED_HEADERS => {
                refuse(out, option, reply::INVALID, "it has no data")
            }
            option::INFO | option::GO => return self.info(exports, option, data, out),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(exports, option, data, out),
            _ => refuse(out, option, reply::UNSUPPORTED, "not known here"),
        }
        Step::Next
    }

    fn start_tls(&mut self, data: &[u8], out: &mut Vec<u8>) -> Step {
        let option = option::STARTTLS;
        match self.tls {
            TlsMode::Off => refuse(out, option, reply::UNSUPPORTED, "there is no TLS here"),
            _ if self.is_secure => refuse(out, option, reply::INVALID, "TLS has begun already"),
            _ if !data.is_empty() => refuse(out, option, reply::INVALID, "it has no data"),
            _ => {
                answer(out, option, reply::ACK, &[]);
                // An attacker on the network may have sent what came before.
                (self.is_secure, self.structured, self.extended, self.contexts) = (true, false, false, None);
                return Step::StartTls;
            }
        }
        Step::Next
    }

    fn begin(&mut self, export: usize) -> Step {
        self.export = Some(export);
        self.contexts = self.contexts.filter(|&(of, _)| of == export);
        self.phase = Phase::Commands;
        Step::Begin(export)
    }

    fn export_name(&mut self, exports: &[Facts], name: &[u8], out: &mut Vec<u8>) -> Step {
        // There is no way to refuse but this.
        let Some(export) = self.find(exports, name) else {
            return self.drop("an export that there is not").1;
        };
        if self.access(export) == Access::Full {
            return self.drop("an export that has all its connections").1;
        }
        out.u64(exports[export].size);
        out.u16(exports[export].flags());
        if !self.no_zeroes {
            out.put(&[0; 124]);
        }
        self.begin(export)
    }

    fn info(&mut self, exports: &[Facts], option: u32, data: &[u8], out: &mut Vec<u8>) -> Step {
        let mut take = Take(data);
        let parsed = take.text().zip(take.u16()).filter(|(name, _)| name.len() <= NAME_MAX);
        let Some((name, _)) = parsed.filter(|(_, count)| take.0.len() == usize::from(*count) * 2) else {
            refuse(out, option, reply::INVALID, "a name and a list of wishes, no more and no less");
            return Step::Next;
        };
        let Some(export) = self.find(exports, name) else {
            refuse(out, option, reply::UNKNOWN, "there is no export of that name");
            return Step::Next;
        };
        if option == option::GO && self.access(export) == Access::Full {
            refuse(out, option, reply::POLICY, "the export has as many connections as it may have");
            return Step::Next;
        }
        let facts = &exports[export];
        let mut tell = |kind: u16, put: &dyn Fn(&mut Vec<u8>)| {
            let mut data = Vec::new();
            data.u16(kind);
            put(&mut data);
            answer(out, option, reply::INFO, &data);
        };
        tell(info::EXPORT, &|data| {
            data.u64(facts.size);
            data.u16(facts.flags());
        });
        // Once, whether it is asked for or not: it is a promise that matters to other clients, too.
        tell(info::BLOCK_SIZE, &|data| {
            let sizes = [facts.block_size_min, facts.block_size_min.max(4096), TRANSFER_MAX];
            sizes.into_iter().for_each(|n| data.u32(n));
        });
        let wishes: Vec<u16> = std::iter::from_fn(|| take.u16()).collect();
        if wishes.contains(&info::NAME) {
            tell(info::NAME, &|data| data.put(facts.name.as_bytes()));
        }
        if wishes.contains(&info::DESCRIPTION) && !facts.description.is_empty() {
            tell(info::DESCRIPTION, &|data| data.put(facts.description.as_bytes()));
        }
        answer(out, option, reply::ACK, &[]);
        if option == option::GO { self.begin(export) } else { Step::Next }
    }

    fn contexts(&mut self, exports: &[Facts], option: u32, data: &[u8], out: &mut Vec<u8>) {
        let is_set = option == option::SET_META_CONTEXT;
        if is_set {
            self.contexts = None;
        }
        if !self.structured {
            return refuse(out, option, reply::INVALID, "structured replies first");
        }
        let Some((name, queries)) = queries(data) else {
            return refuse(out, option, reply::INVALID, "a name and a list of queries, no more and no less");
        };
        let Some(export) = self.find(exports, name) else {
            return refuse(out, option, reply::UNKNOWN, "there is no export of that name");
        };
        // A list may be of all names, or of those that begin so.
        let is_wanted = |context: &Context, q: &[u8]| {
            *q == *context.name || (!is_set && q.ends_with(b":") && context.name.starts_with(q))
        };
        let wanted = CONTEXTS
            .map(|context| queries.iter().any(|q| is_wanted(&context, q)) || (!is_set && queries.is_empty()));
        for (context, _) in CONTEXTS.iter().zip(wanted).filter(|(_, is_wanted)| *is_wanted) {
            let mut data = Vec::new();
            data.u32(if is_set { context.id } else { 0 });
            data.put(context.name);
            answer(out, option, reply::META_CONTEXT, &data);
        }
        if is_set && wanted.contains(&true) {
            self.contexts = Some((export, wanted));
        }
        answer(out, option, reply::ACK, &[]);
    }
}

/// An export's name, and queries.
fn queries(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut take = Take(data);
    let name = take.text().filter(|name| name.len() <= NAME_MAX)?;
    let count = take.u32()?;
    let mut queries = Vec::new();
    // Each takes at least four bytes, so that a large count ends early.
    for _ in 0..count {
        queries.push(take.text()?);
    }
    take.0.is_empty().then_some((name, queries))
}

fn answer(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.u64(wire::OPTION_REPLY);
    out.u32(option);
    out.u32(kind);
    out.u32(data.len() as u32);
    out.put(data);
}

fn refuse(out: &mut Vec<u8>, option: u32, kind: u32, why: &str) {
    answer(out, option, kind, why.as_bytes());
}

/// Requests.
impl Session {
    fn command(&mut self, exports: &[Facts], input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let Some(export) = self.export else { return self.drop("no export") };
        let (magic, size) = match self.extended {
            true => (wire::EXTENDED_REQUEST, EXTENDED_HEADER),
            false => (wire::REQUEST, REQUEST_HEADER),
        };
        let magic = magic.to_be_bytes();
        let seen = input.len().min(magic.len());
        if input[..seen] != magic[..seen] {
            return self.drop("no request");
        }
        let Some(header) = Take(input).bytes(size) else { return (0, Step::Wait) };
        let mut take = Take(&header[4..]);
        let (mut flags, kind) = (take.u16().unwrap_or(0), take.u16().unwrap_or(0));
        let (cookie, offset) = (take.u64().unwrap_or(0), take.u64().unwrap_or(0));
        let len = if self.extended { take.u64() } else { take.u32().map(u64::from) }.unwrap_or(0);
        if kind == command::DISC {
            self.phase = Phase::Over;
            return (size, Step::Leave);
        }
        let says_payload = self.extended && flags & flag::PAYLOAD_LEN != 0;
        let payload = if kind == command::WRITE || says_payload { len } else { 0 };
        // It is skipped if the request is refused, so it is bounded.
        let Ok(payload) = u32::try_from(payload) else { return self.drop("data that never end") };
        let checked = match kind {
            command::WRITE if self.extended => {
                flags &= !flag::PAYLOAD_LEN;
                self.check(&exports[export], flags, kind, offset, len)
            }
            // Data that no other command has.
            _ if says_payload => Err(Errno::Inval),
            _ => self.check(&exports[export], flags, kind, offset, len),
        };
        let request = checked.map(|command| {
            let fua = flags & flag::FUA != 0 && !exports[export].read_only;
            Request { cookie, command, offset, len, fua }
        });
        let step = match request {
            Ok(request) if payload > 0 => {
                self.phase = Phase::Data { left: payload };
                Step::Request(request)
            }
            // Nothing of something is done.
            Ok(request) if len == 0 && request.command != Command::Flush => {
                out.put(self.head(&request, Ok(())).bytes());
                Step::Next
            }
            Ok(request) => Step::Request(request),
            Err(errno) if payload > 0 => {
                self.phase = Phase::SkipData { left: payload, cookie, offset, errno };
                Step::Next
            }
            Err(errno) => {
                self.refuse_request(kind, cookie, offset, errno, out);
                Step::Next
            }
        };
        (size, step)
    }

    /// What is asked for, if it can be.
    fn check(&self, facts: &Facts, flags: u16, kind: u16, offset: u64, len: u64) -> Result<Command, Errno> {
        let (command, allowed) = match kind {
            command::READ => (Command::Read, flag::DF),
            command::WRITE => (Command::Write, 0),
            command::FLUSH => (Command::Flush, 0),
            command::TRIM => (Command::Trim, 0),
            command::WRITE_ZEROES => {
                let no_hole = flags & flag::NO_HOLE != 0;
                (Command::Zero { no_hole }, flag::NO_HOLE | flag::FAST_ZERO)
            }
            command::BLOCK_STATUS if self.structured && self.contexts.is_some() => {
                let one = flags & flag::REQ_ONE != 0;
                (Command::Status { one }, flag::REQ_ONE)
            }
            _ => return Err(Errno::Inval),
        };
        if flags & !(allowed | flag::FUA) != 0 {
            return Err(Errno::Inval);
        }
        if command == Command::Flush {
            return if (offset, len) == (0, 0) { Ok(command) } else { Err(Errno::Inval) };
        }
        let writes = matches!(command, Command::Write | Command::Trim | Command::Zero { .. });
        if writes && facts.read_only {
            return Err(Errno::Perm);
        }
        if matches!(command, Command::Read | Command::Write) && len > u64::from(TRANSFER_MAX) {
            return Err(Errno::Inval);
        }
        if offset.checked_add(len).is_none_or(|end| end > facts.size) {
            let is_full = matches!(command, Command::Write | Command::Zero { .. });
            return Err(if is_full { Errno::NoSpc } else { Errno::Inval });
        }
        if matches!(command, Command::Write | Command::Zero { .. }) && offset + len > facts.write_end {
            return Err(Errno::NoSpc);
        }
        let mask = u64::from(facts.block_size_min.max(1)) - 1;
        if (offset | len) & mask != 0 || (len == 0 && matches!(command, Command::Status { .. })) {
            return Err(Errno::Inval);
        }
        let wants_fast = flags & flag::FAST_ZERO != 0;
        let is_fast = facts.fast_zero && command == Command::Zero { no_hole: false };
        if matches!(command, Command::Zero { .. }) && wants_fast && !is_fast {
            return Err(Errno::NotSup);
        }
        Ok(command)
    }

    fn refuse_request(&self, kind: u16, cookie: u64, offset: u64, errno: Errno, out: &mut Vec<u8>) {
        if self.extended {
            out.put(extended_error(cookie, offset, errno).bytes());
        } else if self.structured && matches!(kind, command::READ | command::BLOCK_STATUS) {
            out.put(error_chunk(cookie, errno).bytes());
        } else {
            out.put(simple(cookie, Err(errno)).bytes());
        }
    }

    /// Returns the beginning of the reply to a request; a read that succeeded has its data behind it. Block
    /// status has [a reply of its own](Self::status) if it succeeded.
    #[must_use]
    pub fn head(&self, request: &Request, result: Result<(), Errno>) -> Head {
        if self.extended {
            return extended_head(request, result);
        }
        let is_structured = matches!(request.command, Command::Read | Command::Status { .. });
        if !self.structured || !is_structured {
            return simple(request.cookie, result);
        }
        match result {
            Err(errno) => error_chunk(request.cookie, errno),
            Ok(()) if request.len == 0 => structured(request.cookie, chunk::NONE, 0),
            Ok(()) => {
                let mut head = structured(request.cookie, chunk::OFFSET_DATA, 8 + request.len as u32);
                head.u64(request.offset);
                head
            }
        }
    }

    /// Returns the reply to a question for block status, given the extents: their lengths, in order, and
    /// whether each is a hole. It has a chunk for each context.
    #[must_use]
    pub fn status(&self, request: &Request, extents: &[(u32, bool)]) -> Vec<u8> {
        let chosen = self.contexts.map_or([false; CONTEXTS.len()], |(_, chosen)| chosen);
        let mut chosen = CONTEXTS.iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen).peekable();
        let mut out = Vec::new();
        while let Some((context, _)) = chosen.next() {
            let at = out.len();
            if self.extended {
                let len = 8 + 16 * extents.len() as u64;
                let head = extended(request.cookie, request.offset, chunk::BLOCK_STATUS_EXTENDED, len);
                out.put(head.bytes());
                out.u32(context.id);
                out.u32(extents.len() as u32);
            } else {
                let len = 4 + 8 * extents.len() as u32;
                out.put(structured(request.cookie, chunk::BLOCK_STATUS, len).bytes());
                out.u32(context.id);
            }
            if chosen.peek().is_some() {
                // Behind the magic number: another chunk follows.
                out[at + 4..at + 6].fill(0);
            }
            for &(len, is_hole) in extents {
                let state = if is_hole { context.hole } else { context.data };
                if self.extended {
                    out.u64(len.into());
                    out.u64(state.into());
                } else {
                    out.u32(len);
                    out.u32(state);
                }
            }
        }
        out
    }
}

fn simple(cookie: u64, result: Result<(), Errno>) -> Head {
    let mut head = Head::EMPTY;
    head.u32(wire::SIMPLE_REPLY);
    head.u32(result.map_or_else(|e| e as u32, |()| 0));
    head.u64(cookie);
    head
}

/// The header of the only, or the last, chunk of a reply.
fn structured(cookie: u64, kind: u16, len: u32) -> Head {
    let mut head = Head::EMPTY;
    head.u32(wire::STRUCTURED_REPLY);
    head.u16(chunk::DONE);
    head.u16(kind);
    head.u64(cookie);
    head.u32(len);
    head
}

fn error_chunk(cookie: u64, errno: Errno) -> Head {
    let mut head = structured(cookie, chunk::ERROR, 6);
    head.u32(errno as u32);
    head.u16(0);
    head
}

/// [`structured`] with extended headers.
fn extended(cookie: u64, offset: u64, kind: u16, len: u64) -> Head {
    let mut head = Head::EMPTY;
    head.u32(wire::EXTENDED_REPLY);
    head.u16(chunk::DONE);
    head.u16(kind);
    head.u64(cookie);
    head.u64(offset);
    head.u64(len);
    head
}

fn extended_head(request: &Request, result: Result<(), Errno>) -> Head {
    let (cookie, offset) = (request.cookie, request.offset);
    match result {
        Err(errno) => extended_error(cookie, offset, errno),
        Ok(()) if request.command == Command::Read && request.len > 0 => {
            let mut head = extended(cookie, offset, chunk::OFFSET_DATA, 8 + request.len);
            head.u64(offset);
            head
        }
        Ok(()) => extended(cookie, offset, chunk::NONE, 0),
    }
}

fn extended_error(cookie: u64, offset: u64, errno: Errno) -> Head {
    let mut head = extended(cookie, offset, chunk::ERROR, 6);
    head.u32(errno as u32);
    head.u16(0);
    head
}
