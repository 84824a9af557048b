//! The macro that makes the types and functions from the table. Only `table.rs` uses the macro; it also imports the
//! items that the macro's code needs.

macro_rules! ops {
    ($(
        $(#[doc = $doc:literal])+
        $code:literal $variant:ident $name:literal $effect:ident -> $result:ident $(= $marker:literal)? {
            $( $(#[doc = $arg_doc:literal])+ $arg:ident: $ty:ty $(where $least:literal..=$greatest:expr)?, )*
        }
    )*) => {
        /// An operation with its arguments.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Op {
            $(
                $(#[doc = $doc])+
                $variant { $( $(#[doc = $arg_doc])+ $arg: $ty, )* },
            )*
        }

        /// The table: one row per operation, by code.
        pub const OPS: &[OpInfo] = &[$(
            OpInfo {
                code: $code,
                name: $name,
                effect: Effect::$effect,
                args: &[$( ArgInfo {
                    name: stringify!($arg),
                    kind: <$ty as Argument>::KIND,
                    range: ops!(@range $ty $(, $least, $greatest)?),
                    doc: concat!($($arg_doc),+).trim_ascii_start(),
                }, )*],
                result: ResultKind::$result,
                marker: ops!(@marker $($marker)?),
                doc: concat!($($doc),+).trim_ascii_start(),
            },
        )*];

        /// Which operation: a variant of [`Op`] without its arguments.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum OpKind {
            $( $(#[doc = $doc])+ $variant, )*
        }

        impl OpKind {
            /// Its row of the table.
            pub const fn info(self) -> &'static OpInfo {
                &OPS[self as usize]
            }
        }

        impl Op {
            /// Which operation this is.
            #[inline]
            pub fn kind(&self) -> OpKind {
                match self { $( Op::$variant { .. } => OpKind::$variant, )* }
            }

            /// Its row of the table.
            #[inline]
            pub fn info(&self) -> &'static OpInfo {
                self.kind().info()
            }

            /// Its code on a binary connection.
            pub fn code(&self) -> u8 {
                match self { $( Op::$variant { .. } => $code, )* }
            }

            /// The size of its binary form in bytes.
            pub fn size(&self) -> usize {
                match self { $( Op::$variant { $($arg),* } => 1 $( + Argument::size($arg) )*, )* }
            }

            /// Calls `visit` with each of its arguments that names a file on the emulator's machine: those called `path`.
            ///
            /// # Errors
            /// The first error that `visit` returns.
            pub fn try_for_each_path<E>(
                &mut self,
                mut visit: impl FnMut(&mut String) -> Result<(), E>,
            ) -> Result<(), E> {
                match self {
                    $( Op::$variant { $($arg),* } => {
                        $( if stringify!($arg) == "path" && let Some(path) = Argument::text_mut($arg) {
                            visit(path)?;
                        } )*
                    } )*
                }
                Ok(())
            }

            /// The forms of its arguments in marker text, in order.
            pub(crate) fn marker_args(&self) -> Vec<Vec<u8>> {
                match self { $( Op::$variant { $($arg),* } => vec![ $( Argument::to_marker($arg) ),* ], )* }
            }
        }

        impl Wire for Op {
            fn encode(&self, out: &mut Vec<u8>) {
                out.push(self.code());
                match self { $( Op::$variant { $($arg),* } => { $( $arg.encode(out); )* } )* }
            }

            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match reader.get::<u8>()? {
                    $( $code => Ok(Op::$variant { $( $arg: reader.get()? ),* }), )*
                    value => Err(DecodeError::Unknown { what: "operation", value }),
                }
            }
        }
    };
    (@range $ty:ty) => { <$ty as Argument>::RANGE };
    (@range $ty:ty, $least:literal, $greatest:expr) => { Some(($least, $greatest)) };
    (@marker) => { None };
    (@marker $marker:literal) => { Some($marker) };
}
