"""What stands for Django's own in templates gives what Django gives, and remembers nothing that may change."""

from django import forms
from django.forms.renderers import DjangoTemplates
from django.template import Context, Template, engines
from django.utils import translation

from apps.common.drawing import Renderer

AWKWARD = "<\"&'>"


class Everything(forms.Form):
    """Each kind of control, with values and attributes that must be escaped."""

    words = forms.CharField(
        initial=AWKWARD, max_length=30, widget=forms.TextInput({"list": "near", "placeholder": AWKWARD})
    )
    secret = forms.CharField(widget=forms.PasswordInput)
    number = forms.IntegerField(initial=1200, min_value=0)
    address = forms.EmailField()
    page = forms.URLField(assume_scheme="https")
    day = forms.DateField(widget=forms.DateInput({"type": "date"}))
    on = forms.BooleanField(required=False, initial=True)
    hidden = forms.CharField(widget=forms.HiddenInput, initial=0)
    one = forms.ChoiceField(choices=[("", AWKWARD), (AWKWARD, "b"), ("group", [("c", "C"), ("d", "D")])], initial="c")
    some = forms.MultipleChoiceField(choices=[("a", "A"), ("b", "B")], initial=["a", "b"])
    either = forms.NullBooleanField()
    text = forms.CharField(widget=forms.Textarea)
    file = forms.FileField(widget=forms.FileInput)
    ways = forms.ChoiceField(choices=[("a", "A")], widget=forms.RadioSelect)


def test_controls_are_those_of_django():
    def drawn(renderer, data):
        return ["".join(str(field).split()) for field in Everything(data, renderer=renderer)]

    for data in (None, {"words": AWKWARD, "one": AWKWARD, "some": ["b"], "number": "x", "either": "true"}):
        ours, djangos = drawn(Renderer(), data), drawn(DjangoTemplates(), data)
        assert [pair for pair in zip(ours, djangos, strict=True) if pair[0] != pair[1]] == []


def shown(source, **context):
    return engines["django"].from_string("{% load words ks %}" + source).render(context)


def test_a_sentence_is_said_in_the_language_of_whoever_reads():
    template = engines["django"].from_string(
        '{% load words %}{% translate "Search" %}{% translate "Save" as kept %} {{ kept }}'
    )
    for language, expected in (("en", "Search Save"), ("zh-hans", "搜索 保存"), ("en", "Search Save")):
        with translation.override(language):
            assert template.render() == expected
    assert shown('{% translate "100% <b>" %}') == "100% <b>"
    assert shown("{% translate given %}", given="<b>") == "&lt;b&gt;"
    assert shown('{% translate "Next" context "page" %}') == "Next"


def test_an_address_is_that_of_its_arguments():
    for slug in ("one", "two", "one"):
        assert shown("{% url 'agents:list-agents' slug %}", slug=slug) == f"/{slug}/agents/"
        assert shown("{% url 'agents:list-agents' slug=slug as kept %}{{ kept }}", slug=slug) == f"/{slug}/agents/"
    assert shown("{% url 'agents:list-agents' '' as nowhere %}{{ nowhere }}") == ""


def test_a_symbol_is_the_same_however_its_name_is_given():
    written = "{% load ks %}" + '{% icon "trash" "s" %}|{% icon "trash" %}'
    given = "{% load ks %}{% icon name classes %}|{% icon name as kept %}{{ kept }}"
    context = {"name": "trash", "classes": "s"}
    drawn = Template(written).render(Context(context))
    assert drawn == Template(given).render(Context(context))
    assert drawn.count("<svg") == 2
