"""Prohibitions, approvals and checks survive every compaction, in rules and in what the user says (S3.30)."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from context_session import Session, instructing, projected
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.turns.duties import LONG_MESSAGE, apart, binding, binds, is_duty, lost, sections, sentences

PROHIBITED = (
    "Never push to main.", "Do not edit files below src/generated.", "Don't rename exported functions.", "Don\u2019t touch the lock file.",
    "No network calls in unit tests.", "You must not log credentials.", "Avoid wildcard imports.", "Refrain from reformatting untouched files.",
    "Leave the lock file alone.", "Only touch the package that fails.", "Secrets are off-limits.", "Use vitest instead of jest.",
    "The vendor folder is read-only.", "Nobody commits without a ticket.", "It is forbidden to skip hooks.", "Stop before the release branch is touched.",
    "Keep out of vendor/.", "Hands off the lexer.", "Stay within packages/parser.", "Skipping hooks is not allowed.", "Force pushes are prohibited.",
    "The schema is frozen.", "Fix the parser, not the lexer.", "Comments stay as they are unless they are wrong.", "I don\u2019t want you to rewrite it.",
    "Steer clear of the billing code.", "Nothing under infra/ may change.", "I'd rather you didn't touch the lockfile.",
    "Leave config.py as it is.", "I'd rather you left the schema alone.", "不要修改生成的文件。", "🚫 force pushes",
)  # fmt: skip
APPROVED = (
    "Ask before adding a dependency.", "A maintainer approves every schema change.", "Get permission from the owner of the module.",
    "Confirm destructive commands with the user.", "Deployments need sign-off.", "Check with me before you merge.", "Consult the security team first.",
    "Wait for a human before merging.", "Escalate failing releases to the owner.", "Tell me which files you delete.", "Run it by me first.",
    "Let me review the migration.", "Nothing ships without asking.", "Deploy only after approval.", "发布前必须得到批准。", "Ping me ahead of any migration.", "Deploys need a thumbs-up from Anna.", "Releases wait for Ben's green light.",
)  # fmt: skip
CHECKED = (
    "Run pnpm test after each change.", "All tests must pass.", "Lint before you commit.", "Verify the fix with the failing test.", "Make sure the build is green.",
    "Type checks are required.", "Every bug fix needs to have a regression test.", "Check that the changelog is there.", "Validate the schema with the script.",
    "Always format with ruff.", "Remember to rebuild the fixtures.", "Keep the tests green.", "Double-check the numbers.", "提交前请先运行测试。",
)  # fmt: skip
PLAINLY_SAID = (
    "# Don'ts\n- push\n- deploy", "Nev\u00ader push.",
    "dont commit anything", "you shouldnt push", "Do **not** push.", "Do _not_ push.", "do *not* deploy", "Pls no commits.", "Zero new dependencies.",
    "Fix it without changing the API.", "Do this without touching the tests.", "Without breaking the CLI.", "We can't drop Python 3.8 support.",
    "pushing isn't allowed", "sudo is not okay", "Change nothing outside src.", "Commit nothing.", "Stick to src/.", "Keep it to one file.", "The config is immutable.",
    "main is protected", "I'll merge it myself.", "Merging is up to me.", "nothing goes to prod until I say so", "I want to review every migration before it runs.",
    "每次修改后都要跑一遍测试。", "保持向后兼容。", "避免修改旧代码。", "仅允许读取文件。", "不允许推送", "不使用 eval", "禁用 eval", "不动数据库", "不改接口", "接口不变", "绝不提交",
    "停止部署", "测试通过后才能提交", "提交之前要测试", "只改 src", "仅在 src 修改", "限制在 src", "由我来部署", "问过我再改", "讓我審一下", "審查後再合併", "不許更動",
    "Keep the public API as it is.", "Please stay in src/parser.", "API freeze!", "The schema is sacred.", "Do it w/o touching tests.", "Commits go through me.",
    "Pushing is my job.", "Leave the release to me.", "Tests first, then code.", "改之前跟我说一声", "部署之前得经过我", "只看 parser 目录", "测试全部过了再提交",
    "涉及生产的操作要人工审核", "无需提交",
)  # fmt: skip
PLAIN = ("The parser lives in this folder.", "Commit c0ffee introduced it.", "We love small modules.", "Ben wrote the first version in 2019.", "The weather is fine.")  # fmt: skip
PASSING = (
    "Now fix the serializer.", "Thanks, looks good.", "What does parse() do?", "I don't know why it fails.", "It doesn't work.", "There's no error now.",
    "No, the other file.", "Run the tests again please.", "It still does not compile.", "I can't reproduce it.", "Why did you change parser.ts?", "Go on.",
)  # fmt: skip
DUTIES = (*PROHIBITED, *APPROVED, *CHECKED)
REPORTED = (
    "it dont work",
    "i cant open the page",
    "It wont start.",
    "看看这个错误",
    "修复解析器",
    "为什么失败",
    "谢谢",
    "人工智能是什么",
    "Keep in mind that it is slow.",
    "The app freezes.",
)

PLAINLY_ASKED = (
    "Nothing gets merged without CI.", "Deleting data is a no-go.", "Run the full suite at the end.", "Run mypy when done.",
    "Check your work with mypy.", "Stay on this branch.", "Work in packages/a alone.", "Just fix the test, nothing more.",
    "We don't force-push here.", "I'll do the commits.", "Any migration goes through Anna.", "提交之前跑一遍测试",
    "Nothing gets deployed without a green pipeline.", "Nothing lands before review.", "Nothing goes live until QA signed.",
    "Force pushes are a no-go.", "Global state is taboo here.", "Rewriting history is off the table.", "Downgrades are out of the question.",
    "Fix the parser and run the linter when you're finished.", "Run eslint at the very end.", "Please re-run the suite when everything is ready.",
    "Format the code as the last step.", "Update the changelog when done.", "Could you run mypy when done?", "Then run tox afterwards.",
    "When you're done, run pytest.", "At the end, run the linter.", "Once done, run pytest.", "Afterwards, run the tests.", "After that run pytest.",
    "When everything works, run the tests.", "As the last step, please run the tests.", "Fix it. When finished, update the changelog.",
    "- run ruff when finished", "Summarize what you did at the end.", "End with a full test run.", "Finish by building the docs.",
    "Check everything against the spec.", "Test your changes on Windows.", "Review every diff.", "Lint your code.", "Remain on the feature branch.",
    "Please stay on Python 3.9.", "Fix it and stay on develop.", "Stay under 100 lines.", "Edit src/core.py alone.",
    "Use the standard library alone, please.", "Touch the tests alone.", "Rename the flag - nothing more.", "Add the endpoint and nothing further.",
    "Fix the typo; nothing beyond that.", "We don't rebase shared branches.", "We won't ship on Fridays.", "we dont squash",
    "In this repo we don't mock the database.", "I'll handle the deployment.", "I will do all merges.", "I'm going to make the release.",
    "I'll push.", "Let me take care of the migrations.", "Every deletion gets approved by me.", "Releases are done by us.",
    "Schema changes go through the DBA team.", "All deploys go via @ops.", "Every release passes through QA.", "Keep your hands off the CI config.",
    "Keep IE11 support.", "Don t commit.", "改完跑一遍测试", "部署前先检查配置", "最后跑 lint", "完成后运行全部测试", "合并之前都要验证", "推送之后通知团队",
    "When you've finished, run the tests.", "Once it's fixed, run the tests.", "Once it compiles, run the tests.", "As soon as you're done, run the tests.",
    "When the refactoring is done, run the tests.", "Before wrapping up, run mypy.", "Before handing over, run mypy.", "When you're done, could you please run the tests?",
    "At the end, please also run the tests.", "I want you to run the tests at the end.", "You should run the tests at the end.", "Run the tests at the end, ok?",
    "run the tests at the end ok?", "Commit when done.", "Take a screenshot when you're done.", "改完之后跑一下测试", "做完以后运行所有测试", "完成后请运行 lint", "如果测试失败就停下来",
    "Fix the parser, then run the tests.", "Finally, run the tests.", "Then run the full test suite.", "Lastly, run the linter.", "And finally run make check.",
    "When fixed, run the tests.", "When you're done with that, run the tests.", "When you're done, write a summary.", "Test at the end.", "Update docs at the end.",
    "Run the tests once it compiles.", "Post the test results when you're done.", "I'd like you to run mypy at the end.", "To wrap up, run the tests.", "Last, run the tests.",
    "After fixing, run all tests.", "出错就停", "遇到问题请停下来", "修好后跑一遍 e2e", "When you're done, I want you to run the tests.", "Undo the debug changes when you're done.",
    "Remove the debug prints once you've finished.", "When you're done, commit.", "When you have finished, please bump the version.",
    "Once the bug is fixed, please run the whole suite.", "If the tests fail, stop.", "If anything breaks, revert.", "Fix it, and then lint everything.",
    "Rename the flag and then run pytest.",
    "Change the code but not the tests.", "You can change the code but not the tests.", "You can change anything but the tests.", "You can change anything but not in src/api.",
    "Change anything other than tests.", "Change anything you want apart from the tests.", "Feel free to edit anything besides tests.", "Everything but the tests.",
    "Everything apart from the tests.", "Anything other than the tests.", "All but the tests.", "Apart from the tests you can change anything.",
    "Other than src/gen, feel free to edit.", "But not the tests.", "The API stays the way it is.", "The tests stay as they are.", "The schema stays as it is.",
    "The config stays as is.", "Let the tests be.", "Let main alone.", "Keep the diff small.", "Keep changes small.", "Keep it simple.", "Limit yourself to the parser.",
    "Not on main.", "Not in prod.", "Just not on the release branch.", "Not without tests.", "Not before Friday.", "Not a single push.", "The API is locked.",
    "The API is set in stone.", "The format is set in stone.", "Refactor the parser but not the lexer.", "Everything but the tests is fair game.", "除了测试都可以改", "除测试外都可以改",
    "And could you run the tests at the end, please?", "测试以外的都可以改", "除了 src/gen\uff0c其他都可以随便改", "Update all files but the lock file.", "Rest stays the way it is.",
    "If something goes wrong, stop.", "When you're done, bump the version.", "Not on main please.", "We don't put secrets in the repo.", "If you need root, stop.",
)  # fmt: skip
DESCRIBED = (
    "Run the tests.", "Run mypy.", "Run it again please.", "The run fails at the end.", "Run fails when done.", "When done, run fails.", "After that, update fails.", "Once it works, I am happy.",
    "Afterwards, report was empty.", "When you run pytest, it hangs.",
    "Did you run mypy when you were done?", "It stops at the end.", "I ran the suite at the end.", "Test fails at the end.",
    "Build output is empty at the end.", "It crashed when it was done.", "Add a newline at the end of the file.",
    "The loop is done when ready is set.", "Is deleting data a no-go?", "Why is mypy run at the end?", "What happens when it is done?",
    "Nothing happens.", "Nothing is printed.", "There is nothing more to do.", "I click and nothing more happens.", "Nothing works.",
    "It works alone.", "I work alone.", "Does it run alone?", "The page stays on the screen.", "It stayed on this branch.", "I stayed on main.",
    "Why does it stay on the old version?", "We don't know why.", "We don't see the error.", "We don't have logs.", "I don't get it.",
    "We didn't push it.", "We pushed it yesterday.", "Every request goes through the proxy.", "The traffic goes through Nginx.",
    "Any event passes through the bus.", "It went through Anna.", "Who did the release?", "The release was done by me.", "I did the commits.",
    "Anna merged it.", "I'll look into it.", "I'll be back.", "Let me think.", "Let me try the other file.", "I checked your work.",
    "You checked everything with mypy.", "Have you checked your work?", "The file ends with a newline.", "It finished with an error.",
    "The log ends with a stack trace.", "提交之后测试失败了", "提交之前跑过测试吗", "提交后运行失败", "为什么提交检查失败", "最后运行报错了", "昨天跑了一遍测试", "Fix the parser.",
    "Explain how the lexer works.", "It finishes when all is done.", "Commit c0ffee is at the end.",
    "When the user clicks, update the label.", "When loading, show a spinner.", "If the token is missing, abort the request.", "Show a spinner when loading.",
    "When it starts, run prints a warning.", "The workflow builds it, then runs the tests.", "It installs the deps, then the tests fail.",
    "I pull, then run the tests, and it hangs.", "We build it, then run the tests.", "Then the tests fail.", "Then it works.", "Then run it again.", "Run the tests too please.",
    "Run the tests, ok?", "Once it compiles, it crashes.", "As soon as it starts, the page is empty.", "When the build is done, the page reloads.",
    "When the refactoring was done, tests failed.", "When I was done, tests failed.", "You should see the error.", "I want you to look at it.", "You should know that it is slow.",
    "Commit history is short.", "Commit fails at the end.", "Take a look at the log.", "Write the header at the end of the file.", "Add a comma at the end.", "Is it ok?",
    "Can you see it, please?", "Can you explain how it runs?", "If it fails, it stops.", "If it fails, the server stops.", "If I press it, stop works.",
    "When the timer ends, stop is gray.", "改完之后测试还是失败", "改完之后测试都通过了", "做完之后运行报错", "完成后检查了一下", "如果失败程序就停了", "出错之后就停了", "如果没有就新建一个", "最后测试没有通过",
    "When I run it, then stop it, the page hangs.", "Then the linter crashes.", "The tests ran in the end.", "The job is green in the end.", "Open the file and look at it.",
    "Give me the name of the file.", "Once upon a time, it worked.",
    "Close the dialog when it is done.", "When it is done, close the dialog.", "Remove the spinner when everything is ready.", "Open the menu when ready.",
    "Remove the item when you click it.", "Open the menu when the user is in the list.",
    "It works locally but not in CI.", "It fails on main but not on develop.", "Format output looks right but not the colour.", "Update works but not on Windows.",
    "I know it but not well.", "I fixed the parser but not the lexer.", "We tried it but not on Windows.", "Everything but the tests works.", "All but two.",
    "Everything apart from the docs looks good.", "Anything other than 200 is an error.", "Nothing other than a warning is shown.", "It stays the same when I click.",
    "The page stays as it is when I click.", "It stayed the way it was.", "I keep the fan low.", "Keep in mind that the sample is small.", "It keeps the cache small.",
    "Not in the logs.", "Not on my machine.", "Not at all.", "Not for me.", "Not in the mood.", "Not sure.", "Not here.", "Not yet.", "But not for long.",
    "The file is locked by another process.", "The door is locked.", "The API is fixed now.", "Let it be known.", "除了这个都通过了", "除了测试都能运行", "除了这里其他都正常",
    "There is nothing other than noise.", "Other than that it works.", "Apart from that, it looks good.", "Besides that, you are right.", "Why does it work locally but not in CI?",
    "Did you change everything but the tests?", "The list holds everything but the last row.", "It returns all but the first.", "The button can change colour but not size?",
    "Is the API locked?", "The loop runs over everything but the header.",
    "We don't run it on Windows.", "We don't call parse anywhere.", "I don't work on Mondays.", "I don't take it personally.", "We don't write to that file.",
    "We don't log anything there.", "I don't support that team any more.", "This can't be shared state.", "It can't be broken.", "That can't be lost data.",
    "Bump the counter when it passes zero.", "If the list is empty, stop.", "If the input is wrong, abort and print an error.", "When the timer fires, stop immediately.",
    "Not without reason.", "Not before it crashed.", "Not in main.py.", "Not on main, on develop it works.", "But not in Firefox.", "The error says it is not allowed.",
    "You should look at the log.", "The runner pulls the image, then runs tests.",
)  # fmt: skip
"""Descriptions, questions, what was, and what is asked for now alone."""
FORBIDDEN_OF_IT = (
    "It is not allowed to push.", "This is not allowed.", "It is not permitted to call the network.", "It isn't allowed to push to main.",
    "That is not acceptable.", "It is not OK to edit tests.", "This is not to be edited.", "It cannot be deleted.", "It can not be renamed.",
    "This can't be deployed.", "this cant be released", "That cannot be used in prod.", "This won't be merged.", "This cannot go out before Friday.",
    "It can't take longer than a second.", "There can't be any push.", "There won't be new releases.", "We don't work on main.", "We don't auto-merge.", "We don't force-push.",
    "I don't accept failing tests.", "I will not approve that.", "We do not support IE.", "We don't log PII.", "We don't run migrations by hand.",
    "We can't have downtime.", "We won't accept that.",
)  # fmt: skip
DESCRIBED_OF_IT = (
    "It is not clear why.", "This isn't working.", "It cannot be reproduced.", "It can't be opened.", "This cannot be parsed.", "I don't know.", "We don't know why.",
    "It is not what I meant.", "This is not the file.", "That was not the reason.", "It was not found.", "That can't be right.", "It can't be that hard.",
    "It won't be long.", "It won't start.", "It doesn't replace the file.", "I can't edit the file.", "I can't move the window.", "I don't write much Rust.",
    "I don't run it often.", "We don't have logs.", "I do not understand it.", "It is not to say that it is bad.", "This is not to be confused with the lexer.",
    "It is not used.", "It isn't deployed.", "It is not merged.", "It does not work on main.", "There is not much to see.", "There won't be an answer.",
    "It could not be loaded.", "I could not be happier.", "We did not work on main.", "It still isn't fast.", "I won't be there.", "It is not okay yet.",
)  # fmt: skip


NO_NEWS = (
    "It's a hotfix, so no refactoring please", "Same as before, so no schema changes", "I said no changes in tests", "That means no new dependencies",
    "I want no new dependencies", "You may edit tests but nothing in src.", "Wait with the commit.", "At the end squash everything", "Later we also need the docs",
    "Remind me to bump the version.", "When you're done write a summary.", "At the end, please open a PR.",
    "From now on use conventional commits.", "Each PR needs a changelog entry.", "Please be careful with the prod database.", "keep it under 100 lines",
    "would you mind not committing?", "Stick with React 17.", "Pin it to 1.2.", "Leave React at 17.", "pnpm not npm please", "Every change needs a test.",
    "Just no new dependencies.", "Then no refactoring please.", "So no more changes to the API, please.", "Still no deploys until Monday.", "I need no more than 80 characters per line.",
    "Just no refactoring.", "Still no commits.", "Then no pushes.", "Remind me when you push.",
)  # fmt: skip
TOLD_OF_NO = (
    "I tried everything but nothing works.", "It has no effect.", "I have no idea.", "At the end the build fails.", "In the end it works.", "Later it works.",
    "Later versions fix it.", "At the end users see a blank page.", "When you're done I take over.", "Later on the page shows x.",
    "Still no output.", "It says no such file.", "So no error anymore, great.", "Remind me how the cache works?", "Later today we have the demo.", "At the end pytest hangs.",
    "I ran it again, still no changes in the UI.", "git status says no changes.", "The linter says no changes needed.", "Still no deployment after 5 minutes.",
)  # fmt: skip


def test_short_prohibitions_and_wishes_for_later_bind_and_reports_do_not():
    assert [each for each in NO_NEWS if not binds(each)] == []
    assert [each for each in TOLD_OF_NO if binds(each)] == []


def test_requests_for_later_and_limits_of_the_work_bind_by_how_they_are_put():
    assert [each for each in PLAINLY_ASKED if not (binds(each) and is_duty(each))] == []


def test_descriptions_questions_and_requests_for_now_bind_nothing():
    assert [each for each in DESCRIBED if binds(each)] == []


@pytest.mark.parametrize("said", ["Please look at this\n\nDon't run anything.", "Fix it\nDo not run the migrations.", "Update it\nDont mock the db"])  # fmt: skip
def test_a_prohibition_at_the_beginning_of_a_line_is_no_report_of_the_line_before(said: str):
    assert binds(said)


def test_a_prohibition_whose_subject_is_a_pronoun_binds_and_a_report_does_not():
    assert [each for each in FORBIDDEN_OF_IT if not binds(each)] == []
    assert [each for each in DESCRIBED_OF_IT if binds(each)] == []


@pytest.mark.parametrize("sentence", [*DUTIES, *PLAINLY_SAID])
def test_a_duty_is_known_in_rules_and_in_messages(sentence: str):
    assert is_duty(sentence) and binds(sentence)


@pytest.mark.parametrize("sentence", PLAIN)
def test_a_section_of_plain_sentences_may_be_a_reference(sentence: str):
    assert not is_duty(sentence) and not binds(sentence)


@pytest.mark.parametrize("sentence", [*PASSING, *REPORTED])
def test_what_a_user_says_in_passing_binds_nothing(sentence: str):
    assert not binds(sentence)


GIVEN_NOW = (
    "go ahead, fetch it", "Go ahead and publish.", "go ahead", "Yes, go ahead!", "ok go ahead, push it", "you may go ahead", "Sure, you can go ahead and run it.", "please go ahead",
    "Approved.", "yes, approved, push it", "I approve", "I approve it, push it", "permission granted", "you have my approval", "Confirmed, thanks", "looks good, go ahead",
    "Fetch it. Go ahead.", "\u540c\u610f", "\u597d\u7684\uff0c\u540c\u610f\u4e86", "\u6279\u51c6\u3002", "go-ahead: publish it", "Go ahead with it, please.", "Yes! Go ahead.\n\nThanks!", "That's fine, go ahead.", "go ahead and commit it, then push it",
    "Yes, go ahead. Thank you so much!", "Go ahead \u2764\ufe0f", "Go ahead \U0001f44d\U0001f3fd", "(go ahead)", "\u2705 go ahead",
    "Yes, go ahead. Thank you!", "Approved, thank you", "Go ahead :)", "Go ahead \U0001f44d", "Go ahead and commit the changes.", "Yes, go ahead, do the rename.",
)  # fmt: skip
GIVEN_WITHIN_LIMITS = (
    *(f"{sign} push" for sign in "\u274c\U0001f6ab\u26d4\u270b\U0001f6d1\U0001f512\u26a0"), "\u274c commit\n\u274c push", "\U0001f6ab commit, \U0001f6ab push", "\u26d4 push the branch",
    "go ahead, but do not push", "go ahead only when CI is green", "go ahead after you ran the tests", "go ahead if CI is green", "Go ahead. If it fails, tell me.", "go ahead once I approve",
    "do not go ahead without me", "I need my go ahead first", "wait until I say go ahead", "I will give the go ahead", "If CI is green, go ahead", "yes, but not X", "go ahead, leave src/api alone",
    "go ahead and keep the API as it is", "Go ahead signals come from me.", "Approved dependencies are fine.", "Approved by me first.", "I approve every push.", "I approve all migrations", "Run the tests, then go ahead",
    "approved, as long as the tests pass", "go ahead with everything except the tests", "go ahead. Never push.", "You have my approval for src/a.ts, nothing else", "go ahead then ask me",
    "\u540c\u610f\uff0c\u4f46\u4e0d\u8981\u63a8\u9001", "\u7ecf\u6211\u540c\u610f\u518d\u63a8", "\u540c\u610f\uff0c\u5982\u679c\u6d4b\u8bd5\u901a\u8fc7", "Go ahead while the tests are green", "go ahead, tests must pass",
    "Go ahead, assuming CI is green.", "Approved, in case CI is green.", "Go ahead, subject to CI.", "Go ahead, provide that CI passes", "You may go ahead with docs/, the rest stays locked.",
    "Go ahead with the rename in docs/ alone.", "Go ahead, CI being green.", "Approved: releases.", "Go ahead, pending a word from Ann.", "Approved for docs/.", "Go ahead, I publish it.",
    "Go ahead. Docs alone.", "Approved, given a green CI", "go ahead, sparing src/", "Go ahead?", "Go ahead, make sure it is fine.", "Approved, minus the push", "\u540c\u610f\uff0c\u6d4b\u8bd5\u901a\u8fc7\u7684\u8bdd",
)  # fmt: skip


def test_a_yes_binds_nothing_beyond_its_round_and_what_limits_it_does():
    assert [each for each in GIVEN_NOW if binds(each)] == []
    assert [each for each in GIVEN_WITHIN_LIMITS if not binds(each)] == []
    assert [each for each in GIVEN_NOW if not is_duty(each)] == [], (
        "in a rule file whatever may be meant as a duty is one"
    )


SEPARATORS = st.sampled_from([" ", "\n", "\n\n", "\n- ", "\n1. ", "\n\n```\nrm -rf x\n\n```\n\n"])
TEXTS = st.lists(st.tuples(st.sampled_from([*DUTIES, *PLAIN]), SEPARATORS), min_size=1, max_size=40).map(
    lambda parts: "".join(sentence + separator for sentence, separator in parts)
)


@given(TEXTS)
def test_sections_are_the_text_and_none_is_divided(text: str):
    made = sections(text)
    assert "\n".join(made).split() == text.split()
    assert all(section in text for section in made), "a section stands in the text as it is"


@given(TEXTS)
def test_a_message_binds_with_all_of_its_duties(text: str):
    kept = binding(text) or ""
    for sentence in DUTIES:
        assert text.count(sentence) == kept.count(sentence) or (len(text) > LONG_MESSAGE and "```" in text), text
    if len(text) <= LONG_MESSAGE:
        assert kept in ("", apart(text)[0])


@given(st.lists(st.tuples(st.sampled_from(["Layout", "Git", "Style", "Never"]), TEXTS), min_size=1, max_size=4))
def test_rules_that_are_too_long_lose_whole_sections_and_no_sentence(parts: list[tuple[str, str]]):
    text = "\n\n".join(f"## {title} {number}\n\n{body}" for number, (title, body) in enumerate(parts))
    seen = projected(
        rules=[{"path": "AGENTS.md", "text": text}], budget={"maxTokens": 90_000, "reserved": {"rules": 1}}
    )
    rows = [row for row in seen.decisions if row["source_kind"] == "repository_instructions"]
    told = "".join(instructing(seen).split())
    for row in rows:
        assert (row["mode"], row["lost_sentences"] == 0) in (("full", True), ("reference", False))
        assert row["mode"] == "full" or f"open {row['reference']}" in seen.text()
    for sentence in {sentence for _, body in parts for sentence in DUTIES if sentence in body}:
        assert "".join(sentence.split()) in told


@pytest.mark.parametrize(
    ("before", "duty", "behind"),
    [
        ("背景说明很长。", "不要推送。", "其他内容。"), ("背景说明很长\uff0c", "不要推送\uff0c", "其他内容\uff0c"), ("a parser reads tokens and ", "never push ", "and so on "),
        ("word ", "Never push. ", "word "), ("The parser reads tokens. ", "Nev\u00ader push. ", "The tokens are read. "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", range(100, 400, 37))
def test_a_duty_deep_inside_a_long_sentence_or_a_text_without_spaces_binds(
    before: str, duty: str, behind: str, place: int
):
    kept = binding(before * place + duty + behind * 200)
    assert kept and duty.strip() in kept and len(kept) < 2 * LONG_MESSAGE


def test_what_is_lost_is_counted_against_the_original_and_not_by_a_pattern():
    pairs = [("It rains. The sun shines.", "It rains."), ("A b c.", "A b c."), ("One. Two. Three.", None)]
    assert lost(pa.array([a for a, _ in pairs]), pa.array([b for _, b in pairs])).tolist() == [1, 0, 3]


def test_a_heading_stands_in_front_of_its_section():
    text = "# Guide\n\n## Never\n\n### In git\n\n- force push\n- amend\n\n## Layout\n\nThe parser lives here.\n"
    told = instructing(projected(rules=[{"path": "AGENTS.md", "text": text}]))
    assert "- (AGENTS.md:6) Never > In git:\n  - force push\n  - amend\n" in told
    assert "(AGENTS.md:11) Layout: The parser lives here.\n" in told


@pytest.mark.parametrize(
    "text",
    [
        "## Never\n\n### In git\n\nforce push\n",
        "# Never\n\n## In git\n\nforce push\n",
        "# Guide\n\n## Never\n\n### In git\n\nforce push\n",
    ],
)
def test_no_heading_that_forbids_is_left_out(text: str):
    assert "Never > In git: force push\n" in instructing(projected(rules=[{"path": "AGENTS.md", "text": text}]))


def test_sentences_end_where_they_end_and_at_list_items():
    assert sentences("Use pnpm, e.g. in CI. Do not use npm!\n- Never push.\n\n1. Ask first.") == [
        "Use pnpm, e.g. in CI.", "Do not use npm!", "- Never push.", "1. Ask first.",
    ]  # fmt: skip


@pytest.mark.parametrize("run", ["\n", " \n", "\t", "*", "_", "*_", "="])
def test_a_long_run_of_blanks_or_marks_is_passed_once(run: str):
    """With a step for each pair of its 200,000 places this would never end."""
    long = run * (200_000 // len(run))
    assert binds(f"Fine.{long} Never push.") and not binds(f"Fine.{long}x")
    assert is_duty(f"Fine.{long} Never push.")


def labeled(file: Path) -> list[tuple[str, str]]:
    """(P, A or V, sentence): prohibitions, approvals, verifications."""
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [(row[0], row[-1]) for row in rows]


def real_sentences() -> list[tuple[str, str]]:
    """Sentences of rule files, one `label<TAB>repository<TAB>sentence` per line."""
    file = os.environ.get("TEST_RULE_SENTENCES")
    if not file:
        pytest.skip("TEST_RULE_SENTENCES names no file of labeled sentences")
    return labeled(Path(file))


def told_as_rules(rows: list[tuple[str, str]], titled: bool) -> list[str]:
    """The sentences that do not instruct when every rule is cut as far as it may be, each in a section of its own."""
    parts = [f"## Part {number}\n\n{sentence}" if titled else sentence for number, (_, sentence) in enumerate(rows)]
    plain = "## Where\n\nThe folder holds a part of it."
    rule = {"path": "AGENTS.md", "text": "\n\n".join([*parts, plain])}
    seen = projected(rules=[rule], budget={"maxTokens": 60_000, "reserved": {"rules": 1}})
    told = instructing(seen)
    assert "holds a part" not in told, "something was cut"
    return [sentence for _, sentence in rows if sentence not in told]


def told_as_messages(rows: list[tuple[str, str]]) -> list[str]:
    """The sentences that do not instruct when the user said each of them long ago, before another goal."""
    session = Session()
    for number, (_, sentence) in enumerate(rows):
        session.add("user.message", turn=number, text=sentence)
    session.add("user.goal", turn=len(rows), text="Now something else.")
    for number in range(60):
        session.add("command.finished", turn=len(rows) + number, command="ls", exitCode=0, stdout="x")
    told = instructing(projected(session, budget={"maxTokens": 60_000}))
    return [sentence for _, sentence in rows if sentence not in told]


OWN = Path(__file__).parent / "fixtures" / "rule_sentences.tsv"
"""What rule files of repositories ask for, in our own words, with the repository that asks for it; labeled by hand."""


def test_a_hundred_labelled_duties_survive_every_compaction():
    rows = labeled(OWN)
    assert len(rows) >= 100 and {label for label, _ in rows} == {"P", "A", "V"}
    assert told_as_rules(rows, titled=True) == []
    assert told_as_messages(rows) == []


def test_labelled_sentences_of_real_rule_files_survive_every_compaction():
    rows = real_sentences()
    assert told_as_rules(rows, titled=True) == []
    missed = told_as_messages(rows)
    assert len(missed) <= len(rows) // 20, missed
