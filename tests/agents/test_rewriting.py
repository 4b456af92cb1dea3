"""A rewrite restores references and changes nothing else."""

import pytest

from apps.agents.rewriting import accepted, leaves_out

EARLIER = "Q: Who wrote the Atlas report of 2023?\nA: Maria Chen wrote the Atlas report [[c1]].\n"
FRUEHER = "Q: 阿特拉斯报告是谁写的？\nA: 陈玛丽写了阿特拉斯报告。\n"


@pytest.mark.parametrize(
    ("question", "rewrite"),
    [
        ("When did she publish it?", "When did Maria Chen publish the Atlas report?"),
        ("And in 2024?", "Who wrote the Atlas report in 2024?"),
        ("What are the most popular recent reports?", "What are the most popular recent reports?"),
        ("她什么时候发表的？", "陈玛丽什么时候发表阿特拉斯报告的？"),
        ("那最近的报告呢？", "最近的阿特拉斯报告是谁写的？"),
        ("How long is her missing paper?", "How long is her Atlas report?"),
    ],
)
def test_restoring_is_accepted(question, rewrite):
    assert accepted(question, rewrite, earlier=EARLIER + FRUEHER)


@pytest.mark.parametrize(
    ("question", "rewrite"),
    [
        ("What are the most popular recent reports?", "What are the reports?"),
        ("Which reports are recent?", "Which reports are from 2023?"),
        ("When did she publish it?", "Please search when Maria Chen published the Atlas report"),
        ("她什么时候发表的？", "请再次搜索陈玛丽什么时候发表阿特拉斯报告"),
        ("When did she publish it?", "Maria Chen published the Atlas report in March, to wide acclaim from critics."),
        ("When did she publish it?", "When did Jonathan Rivers publish the Borealis memorandum?"),
        ("Is it not free?", "Is the Atlas report free?"),
        ("那最近的报告呢？", "阿特拉斯的报告呢？"),
        ("How many in 2024?", "How many in 2023?"),
        ("When did she publish the report on pumps?", "When did Maria Chen never publish the report on pumps?"),
        ("When did she publish the report on pumps?", "When did Maria Chen publish the report on pumps in 2019?"),
        ("它的三个办事处在哪里？", "阿特拉斯的五个办事处在哪里？"),
        ("How many of its three offices are open?", "How many of Atlas's five offices are open?"),
        (
            "What did she say to Borealis about how long the pumps last in cold water near the coast?",
            "What did Maria Chen say about how long the pumps last in cold water near the coast?",
        ),
        ("Where is the final printed paper?", "Where is the Atlas paper?"),
        ("How long is her missing paper?", "How long is her memorandum?"),
        ("When?", ""),
        ("When?", "When?\nThe answer is 2023."),
    ],
)
def test_anything_else_is_refused(question, rewrite):
    assert not accepted(question, rewrite, earlier=EARLIER + FRUEHER)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("When did she publish it?", True),
        ("And in 2024?", True),
        ("What about the price for enterprise customers in Europe?", True),
        ("那价格呢？", True),
        ("这个制度什么时候开始实行的？", True),
        ("Sick leave?", True),
        ("No, I meant the days of sick leave", True),
        ("上面说的第三点具体是什么意思？", True),
        ("How many days of annual leave does every employee have?", False),
        ("出差住宿每晚最高可以报销多少钱？", False),
        ("Hello!", False),
        ("谢谢", False),
    ],
)
def test_only_a_question_that_leaves_something_out_costs_a_call(question, asked):
    assert leaves_out(question) is asked
