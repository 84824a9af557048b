"""A window for `render_mode="human"`, with pygame."""

from __future__ import annotations

import importlib
import weakref
from typing import Any

from framewire.envs._spaces import Array

SCALE = 3
"""The width and height of each picture pixel, in pixels of the window."""

# pygame has only one window, so all environments of a process draw into it. This set has the `Window` objects that have
# drawn into it and are not closed.
_open: weakref.WeakSet[Window] = weakref.WeakSet()


class Window:
    """Shows pictures at the speed of the console. All objects of this class share one window."""

    def __init__(self, title: str) -> None:
        try:
            pygame = importlib.import_module("pygame")
        except ImportError:
            raise ImportError(
                "render_mode='human' needs the package pygame: pip install pygame; 'rgb_array' works without it",
                name="pygame",
            ) from None
        self._pygame: Any = pygame
        self._title = title
        self._surface: Any = None
        self._clock = pygame.time.Clock()

    def show(self, picture: Array, fps: float) -> None:
        """Shows a picture. Then waits, if needed, so that at most `fps` pictures per second are shown."""
        pygame = self._pygame
        height, width, _ = picture.shape
        if self._surface is None:
            pygame.display.init()
            self._surface = pygame.display.set_mode((width * SCALE, height * SCALE))
            pygame.display.set_caption(self._title)
            _open.add(self)
        # The first dimension of pygame's arrays is the column.
        image = pygame.surfarray.make_surface(picture.transpose(1, 0, 2))
        pygame.transform.scale(image, self._surface.get_size(), self._surface)
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(fps)

    def close(self) -> None:
        """Closes the window, unless another environment still uses it."""
        if self._surface is not None:
            self._surface = None
            _open.discard(self)
            if not _open:
                self._pygame.display.quit()
