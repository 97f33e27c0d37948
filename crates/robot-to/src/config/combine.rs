//! For each setting, what the strongest layer says of it.

use super::{Given, Layer, Source};
use std::collections::BTreeMap;

/// What counts of a setting, and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) source: Source,
    pub(crate) given: Given,
}

/// Takes each key from the last layer that has it, whole: a list replaces a list.
pub(crate) fn combine(layers: &[Layer]) -> BTreeMap<String, Chosen> {
    let mut combined = BTreeMap::new();
    for layer in layers {
        for (key, given) in &layer.given {
            let chosen = Chosen {
                source: layer.source.clone(),
                given: given.clone(),
            };
            combined.insert(key.clone(), chosen);
        }
    }
    combined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use std::path::PathBuf;

    /// Layers in which a value says where it is from: its layer and its key.
    fn any_layers() -> impl Strategy<Value = Vec<Layer>> {
        vec(btree_map("[a-e]", vec(any::<u8>(), 0..3), 0..5), 0..6).prop_map(|layers| {
            let layer = |(index, given): (usize, BTreeMap<String, Vec<u8>>)| Layer {
                source: Source::User(PathBuf::from(index.to_string())),
                given: given
                    .into_iter()
                    .map(|(key, values)| {
                        let words = values
                            .iter()
                            .map(|value| format!("{index}{key}{value}").into())
                            .collect();
                        (
                            key,
                            Given {
                                words,
                                line: Some(index as u64),
                            },
                        )
                    })
                    .collect(),
            };
            layers.into_iter().enumerate().map(layer).collect()
        })
    }

    proptest! {
        #[test]
        fn the_last_layer_that_sets_a_key_wins_and_is_named(layers in any_layers()) {
            let combined = combine(&layers);
            for key in ["a", "b", "c", "d", "e"] {
                // Asked from the strongest layer down, and not folded from the weakest up.
                let strongest = layers.iter().rev().find(|layer| layer.given.contains_key(key));
                let expected = strongest.map(|layer| (&layer.source, &layer.given[key]));
                prop_assert_eq!(combined.get(key).map(|chosen| (&chosen.source, &chosen.given)), expected);
            }
            prop_assert!(combined.keys().all(|key| layers.iter().any(|layer| layer.given.contains_key(key))));
        }
    }
}
