//! Converts rows to structs. sqlx's derive does the same, but it builds sqlx, its runtime and its
//! TLS a second time for the compiler.

/// Defines a struct whose fields are the columns of the same names. A last `..name: Type` is read
/// from the same row by that type.
macro_rules! from_row {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_vis:vis $field:ident: $type:ty,)*
            $(..$inner:ident: $inner_type:ty,)?
        }
    ) => {
        $(#[$attribute])*
        $vis struct $name {
            $($(#[$field_attribute])* $field_vis $field: $type,)*
            $($inner: $inner_type,)?
        }

        impl sqlx::FromRow<'_, sqlx::postgres::PgRow> for $name {
            fn from_row(row: &sqlx::postgres::PgRow) -> Result<Self, sqlx::Error> {
                Ok(Self {
                    $($field: sqlx::Row::try_get(row, stringify!($field))?,)*
                    $($inner: <$inner_type as sqlx::FromRow<'_, sqlx::postgres::PgRow>>::from_row(row)?,)?
                })
            }
        }
    };
}

pub(crate) use from_row;
