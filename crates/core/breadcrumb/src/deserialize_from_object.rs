//! Structs that are read from JSON objects only. The derived code would also accept an array of the
//! fields' values, which the OpenAPI document does not mention.

/// Needs `#[serde(remote = "Self")]` on the type.
macro_rules! deserialize_from_object {
    ($type:ident) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> serde::de::Visitor<'de> for Fields {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, fields: A) -> Result<$type, A::Error> {
                        $type::deserialize(serde::de::value::MapAccessDeserializer::new(fields))
                    }
                }

                reader.deserialize_map(Fields)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                $type::serialize(self, writer)
            }
        }
    };
}
pub(crate) use deserialize_from_object;
