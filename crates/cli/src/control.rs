//! `--control` of `serve` and `mount`, and one of its clients, `fairhead ctl`.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use fairhead_lab::schedulers::catalogue;
use fairhead_live::control::{Caller, ControlOptions, ControlServer, line_of_words};
use fairhead_live::{Disk, Error};
use serde_json::Value;

use crate::args::{ControlArgs, CtlArgs};
use crate::error::CliError;
use crate::out;

/// What was written, checked before anything is opened.
pub(crate) fn options(args: &ControlArgs, trust_network: bool) -> Result<ControlOptions, CliError> {
    let metrics = args.metrics.as_deref().map(|text| address("--metrics", text)).transpose()?;
    let socket = args.control.clone();
    Ok(ControlOptions { socket, metrics, trust_network, exports: None, catalogue: catalogue() })
}

/// A port of this machine, or a port of an address.
pub(crate) fn address(flag: &str, text: &str) -> Result<SocketAddr, CliError> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| {
        CliError::Misuse(format!("{flag} {text}: neither a port nor ADDRESS:PORT, such as 127.0.0.1:10809"))
    })
}

/// Lets the disk be controlled, if that is wanted, as long as the answer lives.
pub(crate) fn start(options: &ControlOptions, disk: &Disk) -> Result<Option<ControlServer>, Error> {
    if options.socket.is_none() && options.metrics.is_none() {
        return Ok(None);
    }
    let server = ControlServer::start(disk, options)?;
    if let Some(at) = server.metrics() {
        out::note(&format!("metrics at http://{at}/metrics"));
    }
    Ok(Some(server))
}

/// Connects to the control socket of a server.
pub(crate) fn connect(path: &Path) -> Result<Caller, CliError> {
    Caller::connect(path).map_err(|e| {
        let hint = match path.metadata() {
            Ok(m) if m.file_type().is_socket() => "no server listens there any more",
            Ok(_) => "that is no socket; write the path that serve or mount got with --control",
            Err(_) => "serve and mount make a control socket with --control PATH",
        };
        CliError::Failed(format!("{e}; {hint}"))
    })
}

/// Says one thing, and prints the answer if there is more to it than that it is done.
pub(crate) fn ctl(args: &CtlArgs) -> Result<(), CliError> {
    let line = line_of_words(&args.words).map_err(CliError::Misuse)?;
    let answer = connect(&args.socket)?.ask(&line).map_err(|e| CliError::from(&e))?;
    match answer {
        Value::Object(mut map) => {
            map.remove("ok");
            match map.get("metrics") {
                Some(Value::String(text)) => out::print(text),
                _ if map.is_empty() => Ok(()),
                _ => out::print(&format!("{:#}\n", Value::Object(map))),
            }
        }
        _ => Err(CliError::Failed("the answer of the server is not a JSON object".to_owned())),
    }
}
