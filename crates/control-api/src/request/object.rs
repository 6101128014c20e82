//! Strict parsing of JSON objects. Without it, serde would also accept an array for a struct, and
//! the last of two entries with the same key.

use serde::de::value::StringDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

/// Deserializer that accepts structs only as objects, and refuses duplicate keys at every depth.
pub(crate) struct Objects<D>(pub(crate) D);

/// Entries of an object.
struct Entries<A> {
    access: A,
    keys: HashSet<String>,
}

/// Text of a key, which may represent an integer.
struct KeyText<E>(String, PhantomData<E>);

/// Seed for a key.
struct Key<'k, S> {
    seed: S,
    keys: &'k mut HashSet<String>,
}

/// Expected kind of a value, for the error message.
#[derive(Clone, Copy)]
enum ExpectedType {
    Object,
    /// Minimum and maximum.
    Integer(i64, u64),
    Other,
}

struct Reader<V>(V, ExpectedType);

struct Seed<S>(S);

macro_rules! other {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Reader(visitor, ExpectedType::Other))
        }
    )*};
}

macro_rules! integers {
    ($($method:ident $least:expr, $greatest:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Reader(visitor, ExpectedType::Integer($least, $greatest)))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    other! {
        deserialize_any deserialize_bool deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    }

    integers! {
        deserialize_i8 i8::MIN.into(), u64::from(i8::MAX.unsigned_abs());
        deserialize_i16 i16::MIN.into(), u64::from(i16::MAX.unsigned_abs());
        deserialize_i32 i32::MIN.into(), u64::from(i32::MAX.unsigned_abs());
        deserialize_i64 i64::MIN, i64::MAX.unsigned_abs();
        deserialize_u8 0, u8::MAX.into();
        deserialize_u16 0, u16::MAX.into();
        deserialize_u32 0, u32::MAX.into();
        deserialize_u64 0, u64::MAX;
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_unit_struct(name, Reader(visitor, ExpectedType::Other))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_newtype_struct(name, Reader(visitor, ExpectedType::Other))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_tuple(length, Reader(visitor, ExpectedType::Other))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_tuple_struct(name, length, Reader(visitor, ExpectedType::Other))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_struct(name, fields, Reader(visitor, ExpectedType::Object))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        // Enums in bodies are always strings.
        self.0.deserialize_enum(name, variants, visitor)
    }
}

macro_rules! scalars {
    ($($method:ident($value:ident: $type:ty) $unexpected:expr;)*) => {$(
        fn $method<E: Error>(self, $value: $type) -> Result<V::Value, E> {
            match self.1 {
                ExpectedType::Other => self.0.$method($value),
                ExpectedType::Object | ExpectedType::Integer(..) => Err(E::invalid_type($unexpected, &self)),
            }
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Reader<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            ExpectedType::Object => f.write_str("an object"),
            ExpectedType::Integer(least, greatest) => {
                write!(f, "an integer of {least} to {greatest}")
            }
            ExpectedType::Other => self.0.expecting(f),
        }
    }

    scalars! {
        visit_bool(value: bool) Unexpected::Bool(value);
        visit_f64(value: f64) Unexpected::Float(value);
        visit_str(value: &str) Unexpected::Str(value);
        visit_borrowed_str(value: &'de str) Unexpected::Str(value);
        visit_string(value: String) Unexpected::Str(&value);
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<V::Value, E> {
        // serde_json represents non-negative numbers as `u64`.
        match self.1 {
            ExpectedType::Integer(least, _) if value < least => {
                Err(E::invalid_value(Unexpected::Signed(value), &self))
            }
            ExpectedType::Object => Err(E::invalid_type(Unexpected::Signed(value), &self)),
            ExpectedType::Integer(..) | ExpectedType::Other => self.0.visit_i64(value),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<V::Value, E> {
        match self.1 {
            ExpectedType::Integer(_, greatest) if greatest < value => {
                Err(E::invalid_value(Unexpected::Unsigned(value), &self))
            }
            ExpectedType::Object => Err(E::invalid_type(Unexpected::Unsigned(value), &self)),
            ExpectedType::Integer(..) | ExpectedType::Other => self.0.visit_u64(value),
        }
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        match self.1 {
            ExpectedType::Other => self.0.visit_unit(),
            ExpectedType::Object | ExpectedType::Integer(..) => {
                Err(E::invalid_type(Unexpected::Unit, &self))
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        match self.1 {
            ExpectedType::Object => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
            ExpectedType::Integer(..) | ExpectedType::Other => self.0.visit_seq(Objects(access)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Entries {
            access,
            keys: HashSet::new(),
        })
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(value))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let keys = &mut self.keys;
        self.access.next_key_seed(Key { seed, keys })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.access.next_value_seed(Seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

macro_rules! integer_keys {
    ($($method:ident $visit:ident $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            match self.0.parse::<$type>() {
                // Refuses alternative spellings of a number, such as `012` and `+12`, which would
                // duplicate a key.
                Ok(number) if number.to_string() == self.0 => visitor.$visit(number),
                Ok(_) | Err(_) => visitor.visit_string(self.0),
            }
        }
    )*};
}

impl<'de, E: Error> Deserializer<'de> for KeyText<E> {
    type Error = E;

    integer_keys! {
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        let text: StringDeserializer<E> = self.0.into_deserializer();
        text.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<S::Value, D::Error> {
        let key = String::deserialize(key)?;
        if self.keys.contains(&key) {
            return Err(D::Error::custom(format_args!("duplicate field `{key}`")));
        }
        self.keys.insert(key.clone());
        self.seed.deserialize(KeyText(key, PhantomData))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        T::deserialize(Objects(&mut reader)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_repeated_key_of_a_map_is_refused() {
        type Files = BTreeMap<String, BTreeMap<String, u8>>;
        let files: Files = read(r#"{"a": {"b": 1}, "c": {"b": 2}}"#).unwrap();
        assert_eq!(files["c"]["b"], 2);
        for text in [r#"{"a": {}, "a": {}}"#, r#"{"x": {"a": 1, "\u0061": 2}}"#] {
            let error = read::<Files>(text).unwrap_err();
            assert!(error.starts_with("duplicate field `a`"), "{text}: {error}");
        }
    }

    #[test]
    fn a_key_may_be_a_number() {
        type Counts = BTreeMap<u16, u8>;
        let counts: Counts = read(r#"{"200": 1, "404": 2}"#).unwrap();
        assert_eq!(counts[&404], 2);
        assert!(read::<Counts>(r#"{"70000": 1}"#).is_err());
        assert!(read::<Counts>(r#"{"200": 1, "200": 2}"#).is_err());
        for other in ["0200", "+200", "-0", " 200"] {
            let text = format!(r#"{{"{other}": 1}}"#);
            assert!(read::<Counts>(&text).is_err(), "{text}");
        }
    }
}
