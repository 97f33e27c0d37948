//! State of one invocation, by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One value of each type, made on first use. Hooks and tools of one invocation share it.
#[derive(Default)]
pub struct Store(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Store {
    /// The value of this type.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = map
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(T::default()));
        // The key is the type's own id, so the value is of that type.
        Arc::clone(value).downcast::<T>().unwrap_or_default()
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn one_value_of_each_type_is_shared() {
        let store = Store::default();
        store.get::<AtomicU32>().fetch_add(2, Ordering::SeqCst);
        assert_eq!(store.get::<AtomicU32>().load(Ordering::SeqCst), 2);
        assert_eq!(*store.get::<String>(), "");
    }
}
