"""The guard of rewrites, on recorded ones: every good one passes, every spoiled one falls back to the question."""

import json
import re

import pytest

from apps.agents.rewriting import INSTRUCTION, QUALIFIER, accepted

# (said before, question, what a model made of it); each is right.
GOOD = [
    ("The Atlas report is by Maria Chen.", "When did she publish it?", "When did Maria Chen publish the Atlas report?"),
    ("Annual leave is 25 days.", "And in the first year?", "And how many days is annual leave in the first year?"),
    ("The P-7 costs 1,250 EUR.", "Is it the most popular one?", "Is the P-7 the most popular one?"),
    ("Berlin and Osaka have offices.", "Which of them opened last?", "Which of Berlin and Osaka opened last?"),
    ("The travel policy covers trains.", "Does it not cover taxis?", "Does the travel policy not cover taxis?"),
    ("Form K-77 is for parents.", "Who signs it before 31 March?", "Who signs form K-77 before 31 March?"),
    ("The latest audit is from May.", "What did the first say?", "What did the first audit say?"),
    ("Project Nova has 3 phases.", "How long are all of them?", "How long are all phases of project Nova?"),
    (
        "The station is two miles away, there isn't any bus.",
        "How do I get there?",
        "How do I get to the station 2 miles away with no bus?",
    ),
    ("In Osaka it rains.", "Osaka please, find out about trains.", "Find out about trains in Osaka."),
    ("Dr. Wu leads the lab.", "What is her current budget?", "What is Dr. Wu's current budget?"),
    ("Sales were 5 million in 2023.", "And in 2024?", "And what were sales in 2024?"),
    ("《出差制度》规定住宿标准为六百元。", "那餐费呢？", "《出差制度》规定的餐费是多少？"),
    ("阿特拉斯报告的作者是陈玛丽。", "她什么时候发表的？", "陈玛丽什么时候发表的阿特拉斯报告？"),
    ("年假为 25 天。", "第一年呢？", "第一年的年假为多少天？"),
    ("P-7 型水泵售价 1250 元。", "它是最热门的吗？", "P-7 型水泵是最热门的吗？"),
    ("柏林和大阪设有办事处。", "最近开业的是哪个？", "柏林和大阪的办事处最近开业的是哪个？"),
    ("差旅制度涵盖火车。", "它不包括出租车吗？", "差旅制度不包括出租车吗？"),
    ("表格 K-77 供父母填写。", "3 月 31 日之前由谁签字？", "表格 K-77 3 月 31 日之前由谁签字？"),
    ("新星项目分为三个阶段。", "所有阶段平均多长？", "新星项目所有阶段平均多长？"),
    ("吴博士领导实验室。", "她目前的预算是多少？", "吴博士目前的预算是多少？"),
    ("2023 年销售额为 500 万。", "那 2024 年呢？", "2024 年销售额为多少？"),
]
NUMBER = re.compile(r"\d+")
NAME = re.compile(r"(?<=[a-z,] )[A-Z][A-Za-z0-9-]+")


def spoiled(question, rewrite):
    """Every way to spoil a rewrite that applies to it."""
    for number in NUMBER.findall(question):
        yield rewrite.replace(number, str(int(number) + 1), 1)
    for qualifier in QUALIFIER.findall(question):
        if qualifier.lower() in rewrite.lower():
            word = rf"\b{re.escape(qualifier)}\b" if qualifier.isascii() else re.escape(qualifier)
            yield re.sub(word, "", rewrite, count=1, flags=re.IGNORECASE)
    if not INSTRUCTION.match(question):
        chinese = bool(re.search(r"[\u4e00-\u9fff]", question))
        yield f"请重新搜索：{rewrite}" if chinese else f"Please search again: {rewrite}"
        yield f"请检索{rewrite}" if chinese else f"Find {rewrite}"


@pytest.mark.parametrize(("earlier", "question", "rewrite"), GOOD)
def test_good_ones_pass_and_spoiled_ones_do_not(earlier, question, rewrite):
    assert accepted(question, rewrite, earlier=earlier)
    ways = list(spoiled(question, rewrite))
    assert len(ways) >= 2
    for way in ways:
        assert not accepted(question, way, earlier=earlier), way


def test_on_the_public_set(data_folder):
    """206 dialogues with rewrites by people: what goes on keeps every number, name and qualifier of the question."""
    rows = (data_folder / "rewrite" / "cqr_en" / "items.jsonl").read_text().splitlines()
    items = [json.loads(row) for row in rows]
    kept = passed = ways = refused = 0
    for item in items:
        question = item["dialogue"][item["base_utt_idx"]]["text"]
        earlier = "\n".join(turn["text"] or "" for turn in item["dialogue"] if turn["text"] != question)
        good = accepted(question, item["rewrite"], earlier=earlier)
        used = item["rewrite"] if good else question
        passed += good
        wanted = {*NUMBER.findall(question), *NAME.findall(question), *(q.lower() for q in QUALIFIER.findall(question))}
        kept += all(word.lower() in used.lower() for word in wanted)
        if good:
            for way in spoiled(question, item["rewrite"]):
                ways += 1
                refused += not accepted(question, way, earlier=earlier)
    assert kept / len(items) >= 0.98
    assert passed == len(items)
    assert refused == ways > 200
