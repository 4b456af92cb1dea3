"""Text in pictures: RapidOCR with the PP-OCRv6 models of its wheel (Chinese, English, Japanese).

One page or picture a call, so that each has limits of its own. The engine is loaded once, before
the sandbox forks; it runs on one thread, since threads do not survive a fork.
"""

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from apps.common.text import legible
from apps.knowledge.parsers.content_types import PDF
from apps.knowledge.parsers.parsed import Parsed, ParseFailure
from apps.knowledge.parsers.reading_order import Line, arranged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

LONGEST_SIDE = 2_400  # pixels of a page as it is drawn; the detector takes 2,000 of them
DOTS_A_POINT = 200 / 72
SURE = 0.5  # below this the recogniser is guessing


def prepare() -> bool:
    """Load the engine. False where it is not installed."""
    return _engine() is not None


def recognise(file: BinaryIO, content_type: str, *, page: int, password: str = "") -> Parsed:
    """Read one page, from 1, of a PDF or of a picture; Markdown may be empty, since not every picture has text.

    Raises:
        ParseFailure: needs_ocr where no engine is installed; broken_file; password_required.
    """
    engine = _engine()
    if engine is None:
        raise ParseFailure("needs_ocr")
    pixels = _page(file, page, password) if content_type == PDF else _frame(file, page)
    return Parsed(legible(arranged(_lines(engine, pixels))))


@lru_cache(maxsize=1)
def _engine() -> Any | None:
    try:
        import cv2
        from rapidocr import RapidOCR
    except ImportError:
        return None
    cv2.setNumThreads(1)
    threads = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    engine: Any = RapidOCR(params={"Global.log_level": "critical", **threads})
    logging.getLogger("RapidOCR").disabled = True
    engine._load_det_model()
    engine._load_cls_model()
    engine._load_rec_model()
    return engine


def _lines(engine: Any, pixels: "Pixels") -> list[Line]:
    image, record = engine.preprocess_img(pixels)
    found, turns, read, _crops = engine.run_ocr_steps(image, record)
    if found.boxes is None or read.txts is None:
        return []
    lines = []
    for box, (turn, sure), text, score in zip(found.boxes, turns.cls_res, read.txts, read.scores, strict=True):
        if score >= SURE and text.strip():
            across, down = box[:, 0], box[:, 1]
            turned = "180" in turn and sure > engine.text_cls.cls_thresh
            left, top, right, bottom = map(float, (across.min(), down.min(), across.max(), down.max()))
            lines.append(Line(text, left, top, right, bottom, turned))
    return lines


def _page(file: BinaryIO, number: int, password: str) -> "Pixels":
    import numpy as np
    import pypdfium2 as pdfium

    try:
        page = pdfium.PdfDocument(file.read(), password=password or None)[number - 1]
        scale = min(DOTS_A_POINT, LONGEST_SIDE / max(*page.get_size(), 1.0))
        drawn = page.render(scale=scale, rev_byteorder=False, prefer_bgrx=False).to_numpy()
    except (pdfium.PdfiumError, IndexError, ValueError) as error:
        raise ParseFailure("broken_file", reason="a page that cannot be drawn") from error
    if drawn.ndim == 2 or drawn.shape[2] == 1:
        return np.repeat(drawn.reshape(*drawn.shape[:2], 1), 3, axis=2)
    return np.ascontiguousarray(drawn[:, :, :3])


def _frame(file: BinaryIO, number: int) -> "Pixels":
    import numpy as np

    from apps.knowledge.parsers.pictures import frame

    with frame(file, number, longest_side=LONGEST_SIDE) as picture:
        return np.ascontiguousarray(np.asarray(picture)[:, :, ::-1])
