"""A page as it is looked at: wide and narrow, light and dark. The language is the browser's.

With KNOWSPHERE_ARTEFACTS naming a folder, pictures of all that is looked at are left there.
"""

import os
from pathlib import Path

import axe_playwright_python

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text()
DESK, PHONE, LEAST = ({"width": width, "height": 900} for width in (1440, 390, 320))
EVERYTHING = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
# All that axe asks about colours. Nothing else can change with the theme: names, roles, order and sizes come from the
# document and from rules of width, so they are asked about once a width, in the first theme of it.
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
WAYS = ((DESK, "light", EVERYTHING), (DESK, "dark", COLOURS), (PHONE, "dark", EVERYTHING), (PHONE, "light", COLOURS))
ASKED = """async only => {
    const forever = (each) => each.effect.getTiming().iterations === Infinity;
    for (const each of document.getAnimations()) forever(each) ? each.cancel() : each.finish();
    const found = await axe.run(document, { runOnly: only, resultTypes: ["violations"], preload: false });
    const said = (rule) => rule.nodes.map((node) => `${rule.id}: ${node.target} ${node.any[0]?.message ?? ""}`);
    return found.violations.flatMap(said);
}"""
OVERFLOW = """() => {
    const root = document.documentElement, over = root.scrollWidth - root.clientWidth;
    if (over <= 0) return "";
    const wide = [...document.querySelectorAll("body *")].filter((e) => {
        const box = e.getBoundingClientRect();
        return box.width && (box.right > root.clientWidth + 1 || box.left < -1);
    });
    return `${over} px too wide: ${wide.slice(-3).map((e) => `${e.localName}.${e.className}`)}`;
}"""
# A choice that names its row by an id: the form lets the row say what it is called in logs.
NAMELESS = """() => [...document.querySelectorAll("option")].map((one) => one.label)
    .find((label) => /[0-9a-f]{8}-[0-9a-f]{4}-/.test(label)) ?? null"""


def artefact(name):
    """Return where a picture of that name is left; None where nobody asked for any."""
    folder = os.environ.get("KNOWSPHERE_ARTEFACTS")
    if not folder:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / f"{name.replace(':', '-').replace('/', '-')}.png"


def look(tab, name, *, frame=None, whole=True):
    """Look at what is in ``tab`` (or in a frame of it) in the four ways; return what is wrong."""
    place, wrong = frame or tab, []
    place.evaluate(AXE)
    if said := place.evaluate(NAMELESS):
        wrong.append(f"a choice is called “{said}”")
    for size, theme, rules in WAYS:
        if tab.viewport_size != size:
            tab.set_viewport_size(size)
        tab.emulate_media(color_scheme=theme)
        wrong += [f"{size['width']} {theme}: {said}" for said in place.evaluate(ASKED, rules)]
        if said := place.evaluate(OVERFLOW):
            wrong.append(f"{size['width']} {theme}: {said}")
        if path := artefact(f"{name}.{size['width']}.{theme}"):
            tab.screenshot(path=path, full_page=whole)
    return wrong


def squeeze(tab):
    """Ask whether a page runs off its side at the least width, and from right to left; leave the tab as it was."""
    wrong = []
    for size, direction in ((LEAST, "ltr"), (LEAST, "rtl"), (DESK, "rtl")):
        if tab.viewport_size != size:
            tab.set_viewport_size(size)
        tab.evaluate("dir => { document.documentElement.dir = dir }", direction)
        if said := tab.evaluate(OVERFLOW):
            wrong.append(f"{size['width']} {direction}: {said}")
    tab.emulate_media(color_scheme="light")
    return wrong
