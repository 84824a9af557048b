//! A client of the WebSockets for pictures and sound.

use std::net::TcpStream;

use framewire_media::{Decoder, Header};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::CloseFrame;
use tungstenite::{Message, WebSocket};

use crate::support::Server;

/// Opens a WebSocket at this path.
pub fn socket(server: &Server, target: &str) -> WebSocket<TcpStream> {
    let request = format!("ws://{}{target}", server.address).into_client_request().unwrap();
    tungstenite::client(request, server.connect()).unwrap().0
}

/// A client that receives and decodes the stream of pictures.
pub struct Viewer {
    pub socket: WebSocket<TcpStream>,
    pub decoder: Decoder,
}

impl Viewer {
    pub fn new(server: &Server, target: &str) -> Viewer {
        Viewer { socket: socket(server, target), decoder: Decoder::new() }
    }

    /// Receives the next picture, and returns its header.
    pub fn picture(&mut self) -> Header {
        loop {
            match self.socket.read().unwrap() {
                Message::Binary(message) => return self.decoder.decode(&message).unwrap(),
                Message::Ping(_) => {} // the next read sends the answer
                other => panic!("{other:?} instead of a picture"),
            }
        }
    }

    /// Receives pictures until `wanted` accepts one.
    pub fn picture_with(&mut self, wanted: impl Fn(&Header) -> bool) -> Header {
        loop {
            let header = self.picture();
            if wanted(&header) {
                return header;
            }
        }
    }

    pub fn pixels(&self) -> Vec<u8> {
        self.decoder.image().unwrap().pixels().to_vec()
    }
}

/// Reads until the server ends the stream with a close frame, and returns this frame.
pub fn end_of(socket: &mut WebSocket<TcpStream>) -> CloseFrame {
    loop {
        if let Message::Close(frame) = socket.read().unwrap() {
            return frame.expect("a reason");
        }
    }
}
