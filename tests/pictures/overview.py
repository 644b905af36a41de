"""What fencer does, in one picture: where it stands, and its three steps."""

from __future__ import annotations

from collections.abc import Iterator

from tests.pictures.paper import svg, words

WIDTH, HEIGHT = 640, 500
TITLE = "What fencer does"
ABOUT = (
    "A Kubernetes cluster of three nodes; each node is a guest of a hypervisor. fencer stands outside. "
    "1: the node k8s-2 falls silent. 2: fencer asks the hypervisor, which proves that the guest of k8s-2 is "
    "off. 3: fencer taints the node, and its pods start on other nodes, with their volumes. Without proof, "
    "it does nothing."
)
STEPS = (
    "A node falls silent: dead, or only cut off?",
    "fencer asks its hypervisor: is its guest proven off?",
    "Then it taints the node. Pods and volumes go elsewhere.",
)
PROMISE = "Without proof, fencer does nothing."
NODES = (32, 160, 288)
"""Where nodes and their guests begin, from the left."""
WIDE = 112
"""Each of them."""
SLOTS = (8, 42, 76)
"""Where a node's pods begin; each is as wide as `POD`."""
POD = 28
DEAD = 1
"""Which node dies."""
LEFT, RIGHT = 424, 504
"""Between the cluster and fencer, where arrows are."""


def draw() -> str:
    """Return the picture."""
    drawn = [*_heads(), *_cluster(), *_hypervisor(), *_agent(), *_steps()]
    return svg((TITLE, ABOUT), (WIDTH, HEIGHT), drawn, font_px=17)


def _cluster() -> Iterator[str]:
    yield '<rect class="panel line-line" x="16" y="16" width="400" height="170" rx="10"/>'
    yield words("Kubernetes cluster", 32, 41, "muted")
    yield from _box(250, 28, 14, "acts")
    yield words("pod", 270, 41, "muted")
    yield from _drum(314, 30, 16, 9, "acts")
    yield words("volume", 336, 41, "muted")
    for number, x in enumerate(NODES):
        dead = number == DEAD
        edge = 'class="page line-red" stroke-width="2" stroke-dasharray="5 4"'
        edge = edge if dead else 'class="page line-hatch"'
        yield f'<rect {edge} x="{x}" y="54" width="{WIDE}" height="116" rx="8"/>'
        yield words(f"k8s-{number + 1}", x + 10, 78, "red" if dead else "ink", font_weight=600)
    looks = (("acts", "acts", "green"), ("", "", ""), ("green", "acts", "acts"))
    for x, node in zip(NODES, looks, strict=True):
        for slot, look in zip((SLOTS[0], SLOTS[2]) if not any(node) else SLOTS, node, strict=False):
            yield from _pod(x + slot, 92, look)
    yield _arrow("green", f"M{NODES[1] + SLOTS[0] - 2} 122 H{NODES[0] + WIDE - 3}")
    yield _arrow("green", f"M{NODES[1] + SLOTS[2] + POD + 2} 122 H{NODES[2] + 3}")


def _pod(x: float, y: float, tone: str) -> Iterator[str]:
    """Draw a pod, and its volume below it; without a tone, one that has gone."""
    yield from _box(x, y, POD, tone)
    yield from _drum(x, y + 42, POD, 20, tone)


def _box(x: float, y: float, size: float, tone: str) -> Iterator[str]:
    yield f'<rect {_look(tone)} x="{x}" y="{y}" width="{size}" height="{size}" rx="{size / 5:g}"/>'


def _drum(x: float, y: float, wide: float, high: float, tone: str) -> Iterator[str]:
    """Draw a volume; `y` is the middle of its lid."""
    half, flat = wide / 2, wide / 5
    lid = f"a{half:g} {flat:g} 0 0 0 {wide} 0"
    over = f"v-{high} a{half:g} {flat:g} 0 0 0 -{wide} 0"
    yield f'<path {_look(tone)} d="M{x} {y} v{high} {lid} {over}"/>'
    yield f'<path class="{"line-panel" if tone else "line-muted"}" fill="none" d="M{x} {y} {lid}"/>'


def _look(tone: str) -> str:
    return f'class="{tone}"' if tone else 'class="page line-muted" stroke-dasharray="3 3"'


def _hypervisor() -> Iterator[str]:
    yield '<rect class="panel line-line" x="16" y="218" width="400" height="110" rx="10"/>'
    for number, x in enumerate(NODES):
        dead = number == DEAD
        middle = x + WIDE / 2
        yield f'<path class="line-muted" stroke-dasharray="2 3" d="M{middle:g} 170 V234"/>'
        tone = "off" if dead else "good"
        yield f'<rect class="{tone}" x="{x}" y="234" width="{WIDE}" height="42" rx="8"/>'
        yield words("guest off" if dead else "guest runs", middle, 261, f"on-{tone}", text_anchor="middle")
    yield words("Hypervisor: Proxmox VE, KVM, VirtualBox", 32, 308, "muted")


def _agent() -> Iterator[str]:
    yield '<rect class="panel line-acts" stroke-width="3" x="512" y="17" width="112" height="310" rx="10"/>'
    yield words("fencer", 568, 166, "blue", text_anchor="middle", font_size=26, font_weight=700)
    for y, text in ((194, "outside"), (216, "the cluster")):
        yield words(text, 568, y, text_anchor="middle")
    yield _arrow("red", f"M{LEFT} 84 H{RIGHT - 4}", dashed=True)
    yield from _badge(1, 464, 84, "red")
    yield _arrow("green", f"M{RIGHT} 140 H{LEFT + 4}")
    yield from _badge(3, 464, 140, "green")
    yield _arrow("ink", f"M{RIGHT} 255 H{LEFT + 4}", both=True)
    yield from _badge(2, 464, 255, "ink")


def _heads() -> Iterator[str]:
    """Define the heads of arrows, one for each tone: a marker does not take the colour of its line."""
    yield "<defs>"
    for tone in ("red", "green", "ink"):
        size = 'viewBox="0 0 10 10" refX="7" refY="5" markerWidth="5" markerHeight="5"'
        head = f'<path class="{tone}" d="M0 0 L10 5 L0 10 z"/>'
        yield f'<marker id="{tone}-head" {size} orient="auto-start-reverse">{head}</marker>'
    yield "</defs>"


def _arrow(tone: str, path: str, *, dashed: bool = False, both: bool = False) -> str:
    more = ' stroke-dasharray="5 4"' if dashed else ""
    more += f' marker-start="url(#{tone}-head)"' if both else ""
    return f'<path class="line-{tone}" stroke-width="2.5"{more} marker-end="url(#{tone}-head)" d="{path}"/>'


def _steps() -> Iterator[str]:
    for number, (text, tone) in enumerate(zip(STEPS, ("red", "ink", "green"), strict=True), 1):
        y = 330 + 38 * number
        yield from _badge(number, 32, y - 6, tone)
        yield words(text, 56, y, font_size=18)
    yield words(PROMISE, 56, 330 + 38 * 4, font_size=18, font_weight=700)


def _badge(number: int, x: float, y: float, tone: str) -> Iterator[str]:
    yield f'<circle class="{tone}" cx="{x}" cy="{y}" r="13"/>'
    yield words(str(number), x, y + 6, "page", text_anchor="middle", font_weight=700)
