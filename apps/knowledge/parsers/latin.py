"""Which of the Latin encodings a text is in: the one whose letters some language writes with.

They differ in a few letters each ("é" is one byte in all of them, "à" is "ŕ" or "ą" in others), so frequencies of bytes
tell little, and alphabets tell much.
"""

# In the order in which they are believed where several do.
ALPHABETS = {
    "cp1252": (
        "éèàçêâîôûùëïüœæ", "äöüß", "áéíóúñü", "áâãàçéêíóôõúü", "àèéìíîòóùú", "åäöéü", "æøåéóòâô", "åäöõüšž",
        "áðéíóúýþæö", "ëïéèöüáó", "àçèéíïòóúü",
    ),
    "cp1250": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíľĺňóôŕšťúýž", "áéíóöőúüű", "ăâîșțşţ", "čćđšž"),
    "cp1254": ("çğıiöşüâîû",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūžōŗ"),
    "cp850": ("éèàçêâîôûùëïü", "äöüß", "áéíóúñü", "áâãàçéêíóôõú", "àèéìíòóùú", "åäöé", "æøåé"),
}  # fmt: skip
SIGNS = frozenset("‘’‚“”„«»‹›–—…•·€£¥§°©®™ºª¿¡´¨±×÷µ²¼½\u00a0\u00ad")
MOST_OF_LETTERS = 0.4  # in other scripts than Latin nearly every letter is none of ASCII
LEAST = 0.9  # of the letters beyond ASCII are the language's


def latin(data: bytes) -> str:
    """Return the encoding of a text in Latin letters; "" where it is none, or none of these fits.

    Where all that is not ASCII are quotation marks and the like it is that of Windows.
    """
    beyond = sum(byte > 0x7F for byte in data)
    ascii_letters = len(data) - len(data.translate(None, bytes([*range(65, 91), *range(97, 123)])))
    if beyond and not any(_letters(data.decode("cp1252", errors="replace"))):
        return "cp1252"
    if not beyond or beyond > MOST_OF_LETTERS * (beyond + ascii_letters):
        return ""
    best, best_score = "", 0.0
    for encoding, alphabets in ALPHABETS.items():
        counts, wrong = _letters(data.decode(encoding, errors="replace"))
        total = sum(counts.values()) + wrong
        for alphabet in alphabets:
            known = sum(count for letter, count in counts.items() if letter in alphabet)
            score = known * (known / total) ** 2 if total and known >= LEAST * total else 0.0
            if score > best_score + 1e-9:
                best, best_score = encoding, score
    return best


def _letters(text: str) -> tuple[dict[str, int], int]:
    """Return how often which letter beyond ASCII stands there, and how many signs are none or stand where none may."""
    counts: dict[str, int] = {}
    wrong = 0
    before = " "
    for character in text:
        if character > "\x7f" and character not in SIGNS:
            if character.isalpha() and not (character.isupper() and before.islower()):
                counts[character.lower()] = counts.get(character.lower(), 0) + 1
            else:
                wrong += 1
        before = character
    return counts, wrong
