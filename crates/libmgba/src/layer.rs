use crate::core::Core;

/// A layer of the picture, or a channel of the sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its short name, such as "bg0" or "ch1", which is unique.
    pub name: String,
    /// Its display name.
    pub title: String,
    /// Whether it is a channel of the sound.
    pub sound: bool,
    /// Whether it is on.
    pub enabled: bool,
}

impl Core {
    /// The layers of the picture, followed by the channels of the sound.
    pub fn layers(&self) -> Vec<Layer> {
        [false, true].into_iter().flat_map(|sound| self.layers_of(sound)).collect()
    }

    fn layers_of(&self, sound: bool) -> impl Iterator<Item = Layer> {
        (0..).map_while(move |index| self.handle.layer(sound, index))
    }

    /// Switches a layer or a channel on or off, from the next frame on. This does not affect the game. Returns whether
    /// there is a layer or a channel with this name.
    pub fn enable_layer(&mut self, name: &str, enabled: bool) -> bool {
        for sound in [false, true] {
            let index = self.layers_of(sound).position(|layer| layer.name == name);
            if let Some(index) = index {
                self.switch_layer(sound, index, enabled);
                return true;
            }
        }
        false
    }
}
