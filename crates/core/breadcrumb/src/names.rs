//! The names of an enum's variants, as they are in JSON.

/// Gives an enum `ALL`, `as_str`, `Display` and `FromStr`. `$what` is what an unknown name is
/// not.
macro_rules! names {
    ($kind:ident, $what:literal, { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $kind {
            /// All variants.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| {
                    let known = Self::ALL.map(Self::as_str).join(", ");
                    format!("{text:?} is not a valid {}; expected one of {known}", $what)
                })
            }
        }
    };
}
pub(crate) use names;
