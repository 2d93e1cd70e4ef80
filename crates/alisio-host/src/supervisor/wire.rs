//! What Alisio, the supervisor and the nannies say to each other, over unix sockets that keep message borders.
//!
//! Alisio → supervisor: [`Ask`], a spawn with four descriptors. A request travels in a memory file, so that its size
//! is bounded by `execve` alone. Everything about one call then goes over the call's own socket: nanny → Alisio
//! [`Reply`], Alisio → nanny the number of milliseconds of grace, which means "end it". When Alisio drops its end of
//! that socket, the nanny ends the call.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::process::Exit;

/// What Alisio asks the supervisor.
pub(crate) enum Ask {
    /// Starts the call of a [`Program`]; with the descriptors of request, call socket, standard output and error.
    Spawn,
    /// Gives up on a nanny that does not answer.
    Abandon(i32),
}

/// What happened to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The program runs.
    Started { nanny: i32 },
    /// The program could not be started.
    Failed { stage: Stage, errno: i32 },
    /// The program and everything that it left are gone.
    Ended { exit: Exit, leftovers: u32, survivors: u32, supervisor_ended: bool },
    /// The nanny was ended by somebody else; what it watched over is gone.
    Lost { survivors: u32 },
}

/// The step at which a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Making the processes.
    Fork = 0,
    /// Entering the working directory.
    Directory = 1,
    /// Finding and executing the program.
    Execute = 2,
}

/// A program to execute, as it stands in the memory file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) directory: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// Makes a pair of connected sockets that keep message borders.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message; never blocks, never raises SIGPIPE.
pub(crate) fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    loop {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one message without waiting; an empty one is the end.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = [0; 64];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let n_bytes = loop {
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(message) => break message.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok((bytes[..n_bytes].to_vec(), descriptors))
}

impl Ask {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Spawn => vec![b'S'],
            Self::Abandon(nanny) => [&b"A"[..], &nanny.to_le_bytes()].concat(),
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'S', []) => Some(Self::Spawn),
            (b'A', nanny) => Some(Self::Abandon(i32::from_le_bytes(nanny.try_into().ok()?))),
            _ => None,
        }
    }
}

impl Reply {
    pub(crate) fn encode(self) -> Vec<u8> {
        let (kind, numbers) = match self {
            Self::Started { nanny } => (b'S', [nanny, 0, 0, 0, 0]),
            Self::Failed { stage, errno } => (b'F', [i32::from(stage as u8), errno, 0, 0, 0]),
            Self::Ended { exit, leftovers, survivors, supervisor_ended } => {
                let (is_signal, number) = match exit {
                    Exit::Code(code) => (0, code),
                    Exit::Signal(signal) => (1, signal),
                };
                let (leftovers, survivors) = (leftovers.cast_signed(), survivors.cast_signed());
                (b'E', [is_signal, number, leftovers, survivors, i32::from(supervisor_ended)])
            }
            Self::Lost { survivors } => (b'L', [survivors.cast_signed(), 0, 0, 0, 0]),
        };
        let mut bytes = vec![kind];
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut numbers = [0; 5];
        if rest.len() != 20 {
            return None;
        }
        for (number, bytes) in numbers.iter_mut().zip(rest.chunks_exact(4)) {
            *number = i32::from_le_bytes(bytes.try_into().ok()?);
        }
        Some(match (kind, numbers) {
            (b'S', [nanny, ..]) => Self::Started { nanny },
            (b'F', [stage, errno, ..]) => {
                let stage = [Stage::Fork, Stage::Directory, Stage::Execute]
                    .into_iter()
                    .find(|s| *s as i32 == stage)?;
                Self::Failed { stage, errno }
            }
            (b'E', [is_signal, number, leftovers, survivors, supervisor_ended]) => Self::Ended {
                exit: if is_signal == 0 { Exit::Code(number) } else { Exit::Signal(number) },
                leftovers: leftovers.cast_unsigned(),
                survivors: survivors.cast_unsigned(),
                supervisor_ended: supervisor_ended != 0,
            },
            (b'L', [survivors, ..]) => Self::Lost { survivors: survivors.cast_unsigned() },
            _ => return None,
        })
    }
}

impl Program {
    /// Writes the program into a new memory file.
    pub(crate) fn write(&self) -> io::Result<OwnedFd> {
        let mut bytes = Vec::new();
        let mut field = |text: &[u8]| {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text);
        };
        field(self.directory.as_bytes());
        field(&(self.arguments.len() as u64).to_le_bytes());
        self.arguments.iter().for_each(|argument| field(argument.as_bytes()));
        for (name, value) in &self.environment {
            field(name.as_bytes());
            field(value.as_bytes());
        }
        let mut file =
            File::from(rustix::fs::memfd_create("alisio-request", rustix::fs::MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        file.rewind()?;
        Ok(file.into())
    }

    /// Reads a program back.
    pub(crate) fn read(file: OwnedFd) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::from(file).read_to_end(&mut bytes)?;
        Self::parse(&bytes).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk::<8>()?;
            let (field, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            fields.push(field);
            bytes = rest;
        }
        let mut fields = fields.into_iter();
        let directory = owned(fields.next()?);
        let n_arguments = u64::from_le_bytes(fields.next()?.try_into().ok()?);
        let n_arguments = usize::try_from(n_arguments).ok()?;
        let arguments: Vec<_> = fields.by_ref().take(n_arguments).map(owned).collect();
        let mut environment = Vec::new();
        while let Some(name) = fields.next() {
            environment.push((owned(name), owned(fields.next()?)));
        }
        (arguments.len() == n_arguments).then_some(Self { directory, arguments, environment })
    }
}

fn owned(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard() {
        for reply in [
            Reply::Started { nanny: 7 },
            Reply::Failed { stage: Stage::Directory, errno: libc::ENOENT },
            Reply::Ended { exit: Exit::Code(255), leftovers: 3, survivors: 0, supervisor_ended: false },
            Reply::Ended { exit: Exit::Signal(9), leftovers: 0, survivors: u32::MAX, supervisor_ended: true },
            Reply::Lost { survivors: 1 },
        ] {
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
        for bad in [&b""[..], b"S", b"Zaaaaaaaaaaaaaaaaaaaa", b"Faaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(Reply::decode(bad), None);
        }
    }

    #[test]
    fn programs_of_any_size_and_bytes_travel() {
        let program = Program {
            directory: "/".into(),
            arguments: vec![owned(b"a\xff\n"), OsString::new(), owned(&vec![b'x'; 1 << 20])],
            environment: vec![("NAME".into(), OsString::new())],
        };
        let file = program.write().expect("a memory file");
        assert_eq!(Program::read(file).expect("readable"), program);
        assert!(Program::parse(&[1, 2, 3]).is_none());
    }
}
