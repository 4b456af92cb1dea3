"""Answers as HTML: what may come out, and that blocks are the whole, however the text was cut."""

import re
from types import SimpleNamespace

import pytest
from django.utils import translation
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apps.conversations import blocks
from apps.conversations.blocks import BlockStream
from apps.conversations.markdown import block_starts
from apps.conversations.rendering import AnswerRenderer, render_markdown, short_name, shown_numbers


def source(n, document="Travel policy.pdf", page=None, url=""):
    return SimpleNamespace(n=n, document=document, page=page, url=url)


SOURCES = {n: source(n, page=n) for n in (1, 2, 3)}

LINES = st.sampled_from(
    ["", "", "", "word", "更多内容", "**bold** text", "# head", "===", "---", "- item", "* item", "1. one", "2) two",
     "> quote", "    code", "  - nested", "   para", "```", "```py", "~~~", "|a|b|", "|-|-:|", "|1|[[c2]]|", "a | b",
     "fact [[c1]].", "[[c3]][[c1]]", "事实[[c2]]。", "`[[c1]]`", "[x]: http://a", "[x]", "\t- tab", "<b>", "1", "-",
     "+", "0) z", "\\", "[c", "![i](http://x/y.png)", "~~gone~~", "&amp; &#91;", "***", "***a", "“引文”", "*", "**",
     "$$", "$$x$$", "\\[", "\\]", "$a$ b", "price $5 $6", "**注：**请"]
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(LINES, max_size=14), st.randoms(use_true_random=False), st.sampled_from(["\n", "\n", "\r\n"]))
@example(["1. one", "", "2"], None, "\n")
@example(["- a", "", "-"], None, "\n")
@example(["```", "", "word", "", "```"], None, "\n")
def test_blocks_are_the_whole(lines, rng, newline):
    text = newline.join(lines)
    pieces, place = [], 0
    while place < len(text):
        step = rng.randint(1, 6) if rng else 1
        pieces.append(text[place : place + step])
        place += step
    stream = BlockStream()
    closed = [block for piece in pieces for block in stream.feed(piece)]
    closed += stream.finish()
    assert "".join(closed).strip() == text.strip()
    renderer = AnswerRenderer(SOURCES)
    assert "".join(renderer.render(block) for block in closed) == render_markdown(text, SOURCES.values())


def test_paragraphs_close_as_soon_as_the_next_begins():
    stream = BlockStream()
    assert list(stream.feed("First paragraph.\n\nS")) == ["First paragraph.\n\n"]
    assert list(stream.feed("econd.\n\n- item\n- 2\n\n")) == ["Second.\n\n"]
    assert list(stream.feed("**Bold** again")) == ["- item\n- 2\n\n"]


def test_a_long_fence_costs_little(monkeypatch):
    looks = []
    monkeypatch.setattr(blocks, "block_starts", lambda text: looks.append(len(text)) or block_starts(text))
    stream = BlockStream()
    closed = list(stream.feed("```\n"))
    for i in range(2_000):
        closed += stream.feed(f"line {i}\n\n")
    closed += stream.finish()
    assert len(closed) == 1
    assert len(looks) < 40


HOSTILE = [
    "<img src=x onerror=1>",
    "[x](javascript:1)",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>1</script>)",
    "[x](vbscript:1)",
    "<svg onload=1>",
    "<script>alert(1)</script>",
    "<a href='javascript:1'>x</a>",
    "<iframe src=//evil></iframe>",
    "```mermaid\n<img src=x onerror=1>\n```",
    "```html\n<svg onload=1>\n```",
    "`<svg onload=1>`",
    "$$\\href{javascript:1}{x}$$",
    "![x](https://evil.example/pixel.png)",
    "![x](x\" onerror=\"1)",
    "<http://a\"onmouseover=1>",
    "[[c1]]\" onmouseover=\"1",
    "|<img src=x onerror=1>|\n|-|\n|<svg onload=1>|",
    "# <style>*{display:none}</style>",
    "&lt;img src=x onerror=1&gt;",
    "[a](https://ok.example 'x\" onclick=\"1')",
    "<!-- --><b onclick=1>",
    "<details open ontoggle=1>",
]  # fmt: skip

ALLOWED = re.compile(
    r"""<(?:/?(?:p|em|strong|s|del|code|blockquote|ul|li|h[1-6]|table|thead|tbody|tr|span)|ol|/ol|br|hr|/a|/t[hd]
        |pre\ tabindex="0"|/pre
        |/?m[a-z]+|math\ display="(?:block|inline)"|mo\ stretchy="(?:true|false)"
        |ol\ start="\d+"|/div|div\ class="wide-box"|t[hd](?:\ class="(?:n|center)")?
        |span\ class="(?:nowrap|cite-doc\ opt-s|h[a-z]|)"(?:\ dir="auto")?
        |a\ (?:class="cite"\ href="\#c\d+"\ data-n="\d+"\ data-doc="[^"<>]*"\ aria-label="[^"<>]*"
             |href="(?:https?|mailto):[^"<>]*"(?:\ title="[^"<>]*")?)\ rel="[a-z ]+")>""",
    re.VERBOSE,
)


@pytest.mark.parametrize("text", HOSTILE)
def test_only_what_is_allowed_comes_out(text):
    """In the answer, and as the name of what it cites."""
    for html in (
        render_markdown(text, [source(1)]),
        render_markdown("fact [[c1]].", [source(1, document=text)]),
        render_markdown("fact [[c1]].", [source(1, document="", url=text)]),
        render_markdown(f"{text}[[c1]] {text}", [source(1, document=text, page=2)]),
    ):
        for tag in re.findall(r"<[^>]*>?", html):
            assert ALLOWED.fullmatch(tag), tag


def test_a_marker_names_its_document_and_keeps_its_word():
    html = render_markdown("Book economy [[c2]]. Then [[c9]] go.", [source(2, page=9)])
    assert html == (
        '<p>Book <span class="nowrap">economy<a class="cite" href="#c2" data-n="2" data-doc="Travel policy.pdf, page 9"'
        ' aria-label="Source 1: Travel policy.pdf, page 9" rel="noopener noreferrer nofollow">'
        '<span class="cite-doc opt-s" dir="auto">Travel policy.pdf</span> 1</a>.</span> Then go.</p>\n'
    )


def test_chinese_keeps_one_character_with_the_marker():
    html = render_markdown("标准为每晚六百元[[c1]]。", [source(1)])
    assert html.startswith('<p>标准为每晚六百<span class="nowrap">元<a class="cite"')
    assert html.endswith("</a>。</span></p>\n")


def test_numbers_count_by_first_use():
    text = "`[[c3]]` a [[c3]] b [[c1]][[c3]] c [[c8]]"
    assert shown_numbers(text, SOURCES.values()) == {3: 1, 1: 2}


def test_code_keeps_its_brackets():
    assert "<code>[[c1]]</code>" in render_markdown("`[[c1]]`", SOURCES.values())


def test_two_answers_on_a_page_share_no_anchor():
    assert 'href="#t1-c1"' in render_markdown("a [[c1]]", SOURCES.values(), anchor="t1-")


def test_long_names_keep_beginning_and_type():
    assert short_name("Incident response plan v3.2 (final, scanned).pdf") == "Incident response p….pdf"
    assert short_name("short.pdf") == "short.pdf"
    assert len(short_name("信" * 300)) == 24


def test_the_template_filter_is_the_same_renderer():
    from django.template import Context, Template

    template = Template("{% load ks_citations %}{{ text|ks_citations:citations }}")
    rendered = template.render(Context({"text": "a [[c1]] <b>", "citations": [source(1)]}))
    assert rendered == render_markdown("a [[c1]] <b>", [source(1)])


def test_a_label_speaks_the_readers_language():
    with translation.override("en"):
        assert "page 1" in render_markdown("a [[c1]]", [source(1, page=1)])


@pytest.mark.parametrize(
    ("text", "there", "gone"),
    [
        ("Area $\\pi r^2$ it is.", ["<math", "<msup>"], ["$"]),
        ("面积\\(S=\\frac{a}{b}\\)如下", ["<mfrac>"], ["\\("]),
        ("So:\n\n$$\n\\sum_{i=1}^n x_i\n- b\n$$\n\nEnd.", ['display="block"', "<p>End.</p>"], ["$$", "<li>"]),
        ("\\[ a^2 \\]", ['<math display="block">'], ["\\["]),
        ("It costs $5 and $6, or US$7.", ["$5 and $6, or US$7"], ["<math"]),
        ("Bad $\\frac{$ and `$x$`", ["<code>$x$</code>"], ["<math"]),
        ("$$ never closed", ["$$ never closed"], ["<math"]),
        ("$\\text{<img src=x onerror=1>}$", [], ["<img"]),
        ("$\\href{javascript:1}{x}$ $\\style{x}{y}$", [], ["javascript", "href", "style="]),
        ("**注意：**请看**“引文”**这里", ["<strong>注意：</strong>", "<strong>“引文”</strong>"], ["**"]),
        (
            "**粗体**text **bold**：**x**。",
            ["<strong>粗体</strong>", "<strong>bold</strong>", "<strong>x</strong>"],
            ["**"],
        ),
        ("a ** b ** c 2*3*4", ["a ** b ** c", "<em>3</em>"], ["<strong>"]),
    ],
)
def test_formulas_and_emphasis_in_both_languages(text, there, gone):
    html = render_markdown(text)
    assert [word for word in there if word not in html] == []
    assert [word for word in gone if word in html] == []


def test_code_has_classes_and_no_styles():
    html = render_markdown("```python\ndef f(x):  # [[c1]]\n    return '<b>'\n```", [source(1)])
    assert '<span class="hk">def</span> <span class="hf">f</span>' in html
    assert "&lt;b&gt;" in html
    assert "style=" not in html
    assert re.sub("<[^>]+>", "", html).strip() == "def f(x):  # [[c1]]\n    return '&lt;b&gt;'"


@pytest.mark.parametrize("fence", ["mermaid\nx = 1", "python\n" + "x" * 600, "json\n" + '{"a": 1}\n' * 2000])
def test_code_that_would_cost_too_much_stays_plain(fence):
    assert "<span" not in render_markdown(f"```{fence}\n```")


def test_a_wide_table_scrolls_in_a_box_of_its_own():
    html = render_markdown("|a|b|\n|-|-:|\n|1|2|\n\nText.")
    assert html.startswith('<div class="wide-box"><table>')
    assert "</table></div>\n<p>Text.</p>" in html


@pytest.mark.parametrize("text", ["$" * 3000, "\\(" * 3000, "$a" * 3000, "${" * 1900, "\\[" + "\\" * 3000])
def test_what_only_begins_like_a_formula_stays_text(text):
    assert "<math" not in render_markdown(text) or "$a$" in text
