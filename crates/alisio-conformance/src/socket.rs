//! A TCP stream that can be made to misbehave below HTTP: end, be reset, or say something else than the HTTP library
//! wants to say.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// What is to happen to a connection.
#[derive(Debug, Default)]
pub(crate) struct Control {
    ended: Notify,
    reset: AtomicBool,
    raw: Mutex<Option<Bytes>>,
}

impl Control {
    /// Ends the connection.
    pub(crate) fn end(&self) {
        self.ended.notify_one();
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
        self.end();
    }

    /// Sends `bytes` in place of whatever is written next, and ends the connection.
    pub(crate) fn say_instead(&self, bytes: Vec<u8>) {
        *self.raw.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes.into());
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }
}

/// The stream.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    control: Arc<Control>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, control: Arc<Control>) -> Self {
        Self { stream, control }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.control.reset.load(Ordering::Acquire) {
            // Without it the client sees an ordinary end, which is worth no panic.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, control } = self.get_mut();
        let mut raw = control.raw.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bytes) = raw.as_mut() else {
            return Pin::new(stream).poll_write(cx, buffer);
        };
        while !bytes.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, bytes))?;
            if written == 0 {
                break;
            }
            bytes.advance(written);
        }
        control.end();
        Poll::Ready(Ok(buffer.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
