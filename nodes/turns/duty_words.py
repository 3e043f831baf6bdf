"""Binding words: prohibitions, approvals and checks, as people word them in English and Chinese.

Gives: `BINDS`, `STATED` (reports, which do not bind), `GIVEN` (a bare yes, which does not bind), `ASKED` (requests by
their form), `POLITE` and `AGREED` (requests in the form of a question), and `DUTY`, softer words that count in rules.

Note: these are fixed wordings, not a grammar. A duty that they miss is kept only while its message is in the tail.
"""

from __future__ import annotations

import re

__all__ = ["AGREED", "ASKED", "BINDS", "DUTY", "GIVEN", "POLITE", "STATED"]

_NEGATED = (
    r"\b(?:(?:must|should|shall|may|need|ought)\s*(?:not|n't)|(?:do|could|will|would)\s*(?:not|n't)|can(?:not|'t|\s+not)|won't|(?:do|must|should|need|ca|wo)nt|don'?ts|never|(?:not|(?:is|are)n't)\s+(?:be\s+)?"
    r"(?:allowed|permitted|ok|okay|acceptable|touch|change|edit|modify|commit|push|use|add|remove|delete|to\b|ever|part\s+of))\b"
)
_FORBIDDEN = (
    r"\b(?:keep\b[^.\n]{0,60}\bas\s+(?:(?:it|they)\s+)?(?:is|are|was|were)|stay\s+in|(?:api|code|feature|schema)\s+freeze|sacred|w/o\s+\w+ing|"
    r"avoid\w*|mind\s+not|not\s+[\w.@/-]+\s+please|stick\s+with|(?:keep\s+\w+|stay|remain)\s+(?:under|below)|(?:leave|keep|stay|pin)\b[^.\n]{1,30}?\s(?:at|to|with|on)\s+v?\d[\d.]*|abstain|desist|cease|illegal|immutable|protected|append-only|myself|up\s+to\s+(?:me|us)|until\s+(?:i|we)|without\s+\w+ing|stick\s+to|"
    r"(?:chang|edit|modify|touch|commit|push|merg|delet|remov|renam|install|deploy|releas|publish|add)e?\s+nothing|(?:keep|limit)\s+(?:it|them|this|(?:\w+\s+)?(?:changes?|edits?|tests?|files?))\s+(?:to|as|within|inside)|"
    r"forb[ia]d\w*|prohibit\w*|disallow\w*|refrain|banned|unauthori[sz]ed|hands[- ]off|off[- ]limits|out\s+of\s+bounds|"
    r"(?:keep|stay|steer)\s+(?:out|away|off|clear|within|inside|to)|(?:leave|left)\b(?:[^.\n]|\.(?=\w)){1,80}\b(?:alone|as|unchanged|untouched|intact|be)|untouched|unchanged|"
    r"unmodified|byte-identical|read[- ]only|frozen|no\s+longer|(?:do|does|must|should)\s+nothing|(?:but|and)\s+nothing\s+(?:in|on|under|from|of|inside|to)\b|nothing\s+(?:but|else|except|outside|(?:[\w./`*-]+\s+){0,6}(?:may|must|should|shall|can)\b)|(?:rather|prefer|better)\s+(?:if\s+|that\s+)?you\s+(?:did|do|would)\s*(?:not|n't)|nobody|no\s+one|nowhere|"
    r"none\s+of|instead\s+of|rather\s+than|restrict\w*|limited?\s+to|confine\w*|preserve\w*|ignore|exclude\w*|reserve[ds]?|reject\w*|"
    r"under\s+no\s+circumstances|skip|at\s+most|max(?:imum)?|minimal|unless|except|stale|private|secrets?|sensitive|confidential)\b"
    r"|\bwithout\s+(?:my|asking|an?\s|any|approval|permission|consent|explicit|the\s+user|user|prior|first|confirm\w*|telling|checking|discussion)"
    r"|\b(?:only|solely|exclusively)\b|[,;(\u2013\u2014]\s*(?:and\s+|but\s+)?not\s+(?!sure|yet|that|certain|really|only)[\w`*]"
    r"|(?:^|[.!?;:,|(\u2013\u2014*_>\n]\s*|\s-\s+|^\s*[-*+]\s+|\b(?:and|but|with|pls|plz|please|are|be|gets?|takes?|allows?|permits?|makes?|adds?|absolutely|there\s+(?:is|are))\s+)[*_`]{0,3}(?:no|zero)(?:\s+(?!problem|worries|idea|rush|hurry|question|luck)[\w`*]|n-)"
    r"|\b(?:so|said|wants?|means?|meaning|needs?|prefer|expect|also)\s+no\s+(?!errors?|outputs?|results?|responses?|answers?|such|effect|difference|warnings?|way|one\b|more\s+(?:errors?|failures?|warnings?|problems?|time)\b|reason|idea|problem|luck|longer)[\w`*]"
    r"|\b(?:just|then|still|again|says?)\s+no\s+(?:new\b|(?:[\w-]+\s+){1,3}(?:please|until)\b)"
    r"|(?:^|[.!?\n]\s?)(?:just|then|still|again)\s+no\s+(?:refactoring|renaming|reformatting|rebas(?:e|es|ing)|commits?|push(?:es)?|merges?|deploys?)(?=[.!]|$)"
    r"|(?:^|[.!?;:|\n*_-]\s*)[*_`]{0,3}(?:stop|halt|pause|hold)\b"
)
_APPROVAL = (
    r"\b(?:ask(?:s|ed|ing)?(?!\s+(?:how|what|why)\b)|approv\w+|permission\w*|sign(?:ed)?[- ]?off|consent|confirm\w*|consult\w*|authori[sz]\w+|go[- ]ahead|"
    r"check\s+with|wait\s+(?:for|until|on|with)|remind\s+(?:me|us)\s+(?:to|about|of|when\s+you)|let\s+me\s+(?:review|see|know|check|approve|decide)|(?:run|get)\s+(?:it|that|this|them)?\s*(?:by|past)\s+(?:me|us)|"
    r"(?:get|obtain|need|needs|require)\s+(?:\w+\s+){0,3}(?:ok|okay|approval|review|agreement|buy-in)|(?:tell|show|warn|inform|notify|ping)\s+(?:me|us|the\s+\w+)|thumbs[- ]up|green[- ]?light\w*|notify|"
    r"escalat\w*|human\w*|maintainers?|owners?|explicit\w*|review\w*\s+(?:by|before|first|from|for)|(?:want|like|need|going|have)\s+to\s+(?:review|approve|sign)\b|discuss\w*|propose|request\w*\s+(?:\w+\s+){0,2}(?:review|approval)|"
    r"(?:go(?:es)?|comes?|pass(?:es)?)\s+(?:through|via|past)\s+(?:me|us)|(?:is|are)\s+(?:my|our)\s+(?:job|call|decision)|leave\b[^.\n]{1,60}\bto\s+(?:me|us)|"
    r"when\s+(?:in\s+doubt|unsure)|if\s+(?:you\s+are\s+)?(?:in\s+doubt|unsure|unclear|uncertain|ambiguous)|uncertain)\b"
)
_CHECKED = (
    r"\b(?:verif\w+|validat\w+|ensur\w+|make\s+sure|double[- ]check|be\s+sure|remember\s+to|check\s+(?:that|whether|if|the|for|all|every)|must|always|mandatory|requir\w+|"
    r"(?:have|has|need|needs|needed)\s+to|shall|from\s+now\s+on|going\s+forward|next\s+time|(?:each|every)\s+(?:[\w-]+\s+){1,3}needs?|careful|every\s+time|each\s+time|critical|important|"
    r"(?:before|after|prior\s+to|until|once)\s+(?:you|each|every|any|all|the|a|your|commit\w*|push\w*|merg\w*|releas\w*|deploy\w*|chang\w*|edit\w*|modif\w*|writ\w*|"
    r"finish\w*|submit\w*|claim\w*|open\w*|consider\w*|making|starting|running|adding|creating|delet\w*|finaliz\w*|sending|dependency|destructive|proceed\w*)|"
    r"(?:if|when|whenever|once)\s+you\s+(?:chang\w+|modif\w+|edit\w*|touch\w*|add\w*|renam\w+|delet\w+|remov\w+)|when(?:ever)?\s+(?:[\w/-]+\s+){1,4}chang\w+|"
    r"(?:add|write|include)\b[^.\n]{0,40}\btests?\b[^.\n]{0,40}\b(?:for\s+(?:new|every|each|any|all)|when|with)|"
    r"tests?\s+(?:must|should|have|need|pass|first)|(?:all|every)\s+(?:\w+\s+){0,3}(?:pass|green|tested|documented|covered)|covered\s+by|(?:keep|stay)\b[^.\n]{0,60}\b(?:green|passing|compatible|stable|working|same|up[- ]to[- ]date|in\s+sync)|"
    r"(?:run|re-?run|execute)\b[^.\n]{0,80}\b(?:before|after|each|every|first|whenever|automatically)\b)"
)
_MARKED = r"[\u274c\U0001f6ab\u26d4\u26a0\u270b\U0001f6d1\U0001f512]"
_CJK = (
    "不(?:[要得應应该該宜必用许許能可准動动改变變碰超删刪加推再]|允[许許]|使用|修改|引入|增加|新增|添加|提交|合[并併]|部署|[发發]布|依[赖賴])|[绝絕从從永]不|"
    "避免|以免|防止|杜[绝絕]|禁|停止|[暂暫]停|切忌|[严嚴]格|[谨謹]慎|小心|必[须須]|[许許]可|別|别|勿|[务務]必|[请請]先|先.{0,6}再|[后後]再|才[能可]|方可|前(?:要|先|需|必)|都[要须須得]|"
    "[问問][过過]?我|由我|[让讓]我|我[来來]|我要.{0,6}[看审審]|[确確][认認保]|批准|[审審]批|同意|[验驗][证證]|除非|未[经經]|保持|保留|[维維]持|原[样樣]|"
    "[跟和]我[说說]|通知我|[经經][过過]我|人工(?!智)|[审審]核|[过過完]了?再|无需|無需|不必|[仅僅只](?:允[许許]|可|准|能|限|在|改|看|用|[动動]|修改|[读讀])|限[于於制]|[运運]行[测測][试試]|跑[测測][试試]"
)
"""Words of duty in Chinese: negations, musts, approvals, checks."""
BINDS = re.compile(f"(?im){_NEGATED}|{_FORBIDDEN}|{_APPROVAL}|{_CHECKED}|{_MARKED}|{_CJK}")
"""For texts with single spaces and no blank lines."""
_ACT = (
    r"(?:touch|chang|edit|modif|alter|delet|remov|drop|renam|mov(?:e|ed|ing)\b|replac|overwrit|rewrit|reformat|refactor|merg|push|commit|rebas|squash|amend|revert|tagged|deploy|releas|publish|"
    r"ship|upgrad|downgrad|bump|disabl|skip|bypass|expos|leak|shar(?:e|ed|ing)\b|break|broken|los[et]\b|exceed|take\s+(?:longer|more)\b|go\s+(?:out|live)\b)"
)
"""Beginnings of acts on things."""
_REALLY = r"(?:(?:just|really|still|also) )?"
_SAYS = rf"(?:it|this|that|i|we|he|she|there|which|still) {_REALLY}"
"""The subject of a report, on the same line: a line that begins with a negation is a request."""
_NOT = r" ?(?:not|n't|nt)"
_EVER = r"(?:(?:force|auto|re|hot|ever)[- ]?)?"
_CANNOT = rf"(?:can(?:not|'t|t|\s+not)|wo(?:n't|nt)|(?:will|could|would){_NOT})"
_RULED = (
    rf"{_SAYS}(?:{_CANNOT}|(?:do|does|did|was|is){_NOT})\s+(?:want|like|think|recommend|touch|change|break|drop|lose|remove|delete|rename|add|use|afford|depend|upgrade|ship|release|deploy|push|commit|merge)",
    rf"{_SAYS}{_CANNOT}\s+(?:be\s+(?:(?:any|new|more|a)\s+){{0,2}}(?:(?!shar|broken|los)(?:{_ACT})|used\s+(?:in|on|for|outside)\b)|exceed|take\s+(?:longer|more)\b|go\s+(?:out|live)\b)",
    rf"{_SAYS}(?:is|was){_NOT}\s+(?:(?:allowed|permitted|okay|ok|acceptable|tolerated)\b(?!\s+yet)|to\s+(?:be\s+)?(?:(?:any|an?)\s+)?{_ACT})",
    rf"we\s+{_REALLY}{_CANNOT}\s+(?:{_ACT}|(?:have|risk|allow|accept|rely|tolerate)\b)",
    rf"(?:we|i)\s+{_REALLY}(?:(?:do|will){_NOT}|wo(?:n't|nt))\s+(?:accept|allow|permit|tolerate|approve|{_EVER}{_ACT})",
    rf"we\s+{_REALLY}(?:(?:do|will){_NOT}|wo(?:n't|nt))\s+(?:need\s+(?:any\s+)?new\b|(?:support|work\s+(?:on|in|at|from|directly)|take)\b|{_EVER}(?:write|log|store|call|mix|ignore|mock|install|put|run|rely|hard-?code|copy|vendor|"
    r"push|tag|force|monkey-?patch|cherry-?pick)\b)(?!\s+(?:\w+\s+)?(?:it|them|this|that|any\w*|there|here)\b)",
)
"""Rules worded like reports: acts that a thing must not undergo, and descriptions of how people work."""
STATED = re.compile(
    rf"(?i)\b(?:says|said|states|reports|claims|complains)\s+(?:that\s+)?{_SAYS}(?:is|was){_NOT}|\b(?!{'|'.join(_RULED)}){_SAYS}(?:{_CANNOT}|(?:do|does|did|was|is){_NOT})|\bcannot\s+(?:find|see|reproduce|understand|figure|open|import|resolve)\b"
)
"""Reports of failures, which forbid nothing."""
_GLAD = r"\u2600\u263a\u2705\u2714\u2611\u2728\u2764\ufe0f\U0001f389\U0001f3fb-\U0001f3ff\U0001f44c\U0001f44d\U0001f44f\U0001f4af\U0001f600-\U0001f60e\U0001f64c\U0001f64f\U0001f680\U0001f642\U0001f91d\U0001fae1"
"""Signs that may surround a yes; others (`_MARKED`) forbid, or have a meaning of their own."""
_BETWEEN = rf"[\s.,:;!()\u2013\u2014\u3002\uff0c\uff01{_GLAD}-]"
GIVEN = re.compile(
    rf"(?i){_BETWEEN}*+(?:(?:(?:go(?:[- ]ahead|\sfor\sit)?|proceed|continue|approved|confirmed|agreed|i\s(?:approve|confirm|agree)|(?:permission|approval)\s(?:granted|given)|"
    r"you\shave\smy\s(?:permission|approval|consent|go[- ]ahead)|you\s(?:may|can)|(?:it|this|that)(?:'s|\sis)\s(?:fine|ok|okay|good|right|approved|confirmed)|"
    r"yes|yep|yeah|ok|okay|sure|fine|good|great|perfect|alright|all\sright|(?:looks?|sounds?)\s(?:good|great|fine)|lgtm|thank\syou(?:\s(?:so|very)\smuch)?|thanks?|please|now|and|then|it|this|that|them|"
    r"with\s(?:it|this|that|them)|do|run|fetch|pull|download|install|build|create|write|send|post|open|start|restart|apply|commit|push|merge|rebase|tag|publish|release|deploy|ship|upload|upgrade|"
    rf"implement|execute|the\s(?:changes?|commands?|scripts?|migrations?|plan|fix|commit|rename|edits?|patch|branch|release|package))\b|\u6211?(?:\u540c\u610f|\u6279\u51c6|\u5141\u8bb8)\u4e86?|\u597d\u7684?|\u53ef\u4ee5|\u884c|\u662f\u7684?|\u8bf7|\u8c22\u8c22|\u5427){_BETWEEN}*+)++"
)
"""A message that is only a yes, which gives a permission now and requires none: all of its words mean that the act is
to be done. Any other word may limit the yes, which then binds.
"""
_SOFT = (
    r"\b(?:prefer\w*|tests?|tested|testing|lint\w*|check\w*|format\w*|pass(?:es|ing)?|before|after|prior\s+to|run(?:s|ning)?|type-?check\w*|green|ci|coverage|"
    r"builds?|rebuild\w*|update|keep|stop|warning|deprecated|not|n't|no|none|nor|neither|nothing|without|should|request\w*|review\w*|don'?ts?|disable\w*|stale|"
    r"(?:if|when|whenever|needs?|regenerat\w+|re-generat\w+)|credentials?|tokens?|passwords?|use|uses|follow\w*|include|add)\b"
)
_REST = r"(?:[^.!?\n]|\.(?=\w))"
"""A character of the same sentence."""
_BIDDING = r"(?:i\s+(?:want|need|expect|would\s+like)\s+you\s+to|i'd\s+like\s+you\s+to|you\s+(?:should|must|(?:need|have|ought|are)\s+to)|you'll\s+(?:need|have)\s+to)\s+"
"""Words before a request that turn it into a wish."""
_PLEASE = rf"(?:(?:please|pls|plz|also|just|always|then|kindly|simply)\s+){{0,3}}(?:{_BIDDING})?(?:(?:please|also|just|always)\s+){{0,2}}"
"""Words before a request that do not change it."""
_BEGINS = r"(?:^|[.!?:;,\n]\s?)(?:[-*+]\s|\d{1,3}[.)]\s)?(?:(?:and|but|so)\s+)?"
"""The beginning of a sentence or a clause."""
_BEFORE = (
    r"(?:^|[.!?]\s|\n)(?!(?:i|we|you|they|he|she|it|the|my|our|when|if|why|how|what|where|who|which|does|did|is|are|was|were)\b)"
    + rf"{_REST}{{1,200}}?"
)
"""A request before another request."""
_START = (
    r"(?:(?:^|[.!?;:,(>\n\u2013\u2014]\s?)(?:(?:[-*+]|\d{1,3}[.)]|then|also|so|and|but|finally|lastly)\s)?(?:(?:also|just|always|then|kindly|simply)\s+)?|\b(?:please|pls|plz)\s+(?:also\s+|just\s+)?"
    rf"|\b{_BIDDING}(?:(?:please|also|just|always)\s+)?|{_BEFORE}\b(?:and|then|but)\s+)"
)
"""The beginning of a request: of a sentence, of a clause, or after another request."""
_ENDS = r"\s*(?=[.,;:!)\n]|$)"
_STEP = (
    r"(?:commits?|committing|push(?:es|ing)?|merg(?:es?|ing)|rebas(?:es?|ing)|releas(?:es?|ing)|deploy(?:s|ing|ments?)?|publish(?:ing)?|tag(?:s|ging)?|migrations?|rollouts?|"
    r"deletions?|upgrades?|prs?|pull\s+requests?)"
)
"""Steps that people reserve for themselves or that need an approval."""
_WHEN = r"(?:when(?:ever)?|once|as\s+soon\s+as|after)\s+"
_DONE = r"(?:all\s+|been\s+)?(?:done|finish(?:ed)?|ready|completed?|through|fixed|works?|working|compiles?|builds?|pass(?:es)?|green|in(?=[,.;!)\n]|$))\b(?:\s+(?:with\s+)?(?:it|that|this)\b)?"
_YOU = r"(?:you|u|ur)(?:'re|'ve|re|\s+(?:are|have|think\s+you're))?\s+"
_YOUR_END = rf"{_WHEN}{_YOU}{_DONE}"
"""The end of the work, addressed to the one who does it."""
_ENDED = (
    rf"{_WHEN}(?:{_YOU}|(?:it|that|this|all|everything|the\s+[\w-]+(?:\s+[\w-]+)?)(?:'s|\s+(?:is|are|has))?\s+)?{_DONE}"
)
"""The end of some work."""
_LATER = (
    r"(?:(?:at\s+the\s+(?:very\s+)?end|in\s+the\s+end)(?!\s+of\s+(?:the|each|every|a)\s+(?:file|line|page|string|list|function|loop|array|log|output|table|row|word|path)\b)|"
    rf"{_ENDED}|as\s+(?:the|a|your)\s+(?:last|final)\s+(?:step|thing)|last\s+of\s+all|afterwards?|along\s+the\s+way|as\s+you\s+go)"
)
"""A later time: a request for it outlives the round."""
_STATES = (
    r"(?!\s+(?:is|was|are|were|has|had|fail\w*|crash\w*|stop\w*|end\w*|hang\w*|hung|br[eo]\w+|die[sd]|takes?|took|gets?|got|works?|worked|pass(?:es|ed)?|prints?|printed|shows?|looks?|returns?|"
    r"does|did|errors?|warnings?|output|results?|logs?|issues?|jobs?|steps?|times?)\b)"
)
"""After a word that may be a name: no statement about its state."""
_REQUEST = (
    rf"(?:(?:run|re-?run|execute|rebuild|regenerate|lint|type-?check|update|bump\s+(?:the\s+|our\s+)?version)\b{_STATES}|(?:test|build|check|format|commit|clean|document|summari[sz]e|report|show|do|use)\s+"
    rf"(?:the|an?|your|it|them|this|that|all|everything|each|every|any|what|which)\b|(?:test|build|commit|push|merge|deploy|release|tag|format|compile|clean\s+up|type\s+check|try\s+it(?:\s+out)?)"
    rf"(?=[.!;]|$|\s+(?:and\b|{_LATER})))"
)
"""Acts that may be requested for later."""
_GIVEN = r"(?:take|post|write|send|give|start|open|call|make|undo|restore|revert|remove|delete|close|bump)\s+(?:the|an?|your|me|us|it|them|this|that|all|any|everything)\b"
"""The same, including acts that a program may perform at the end of something."""
_CHECKING = (
    rf"(?:(?:run|re-?run|execute|do|make|start|call|use)\s+(?:[\w./:-]+\s+){{0,4}}?(?:(?:unit\s*|regression\s*)?tests?|suites?|[jp]y?test|jest|vitest|mypy|pyright|ruff|eslint|tsc|tox|nox|lint\w*|type-?check\w*|checks?|"
    rf"checker|e2e|benchmarks?|ci|clippy|pre-?commit)\b{_STATES}|(?:lint|type-?check|test)\s+(?:the|your|it|everything|all)\b)"
)
"""A request for a check."""
_STOP = r"(?:stop|halt|abort|pause|quit|bail(?:\s+out)?|back\s+out|revert|roll\s*back|undo)"
_WORK = r"(?:change|edit|touch|modify|fix|update|refactor|rewrite|rename|reformat|format|move|delete|remove|use|commit|push|deploy|merge|work\s+on|clean\s+up|add|install|run|test|do)"
_MAY = r"\b(?:can|may|should|free\s+to|allowed\s+to|want\s+you\s+to)\s+"
_BUT = r"(?:but(?!\s+not\b)|(?:apart|aside)\s+from|other\s+than|besides|save\s+for)"
_FINITE = r"\b(?:works?|worked|pass\w*|fail\w*|crash\w*|is|are|was|were|looks?|seems?|has|have|had|do|does|did|runs?|ran|compiles?|builds?|can|may|gets?|got|one|two|three|now|long|much|many)\b"
"""Verbs and numbers of reports."""
_WRONG = r"(?:fail\w*|br[eo]\w*k\w*|goes\s+wrong|red|errors?|crash\w*|stuck|unsure|unclear|unexpected\w*|conflicts?|problems?|you)\b"
_NO_VERB = (
    r"(?:the|an?|i|we|you|he|she|it|they|this|that|these|those|there|my|our|your|his|her|its|their|of|in|on|at|for|to|with|by|from|and|or|but|if|when|as|not|nothing|"
    r"is|was|are|were|has|had|have|does|did|all|both|each|every\w*|some\w*|no|what|which|who|how|why|where|also|then|only|today|tonight|tomorrow|next|last|one|two|more|most|versions?|\w+(?:ed|ing|ly|s))\b"
)
"""Words that do not begin a request."""
_ASKED = (
    rf"{_START}{_REQUEST}{_REST}{{0,80}}?\s{_LATER}",
    rf"{_START}{_GIVEN}{_REST}{{0,80}}?\s{_YOUR_END}",
    rf"{_BEGINS}(?:(?:then|also)\s+)?(?:{_LATER}|after\s+(?:that|this))[\s,:.-]+{_PLEASE}{_REQUEST}",
    rf"{_BEGINS}{_YOUR_END}[\s,:.-]+{_PLEASE}{_GIVEN}",
    rf"{_BEGINS}(?:at\s+the\s+(?:very\s+)?end|in\s+the\s+end|later(?:\s+on)?|{_YOUR_END})[\s,:.-]+{_PLEASE}(?:we(?:'ll|\s+will)?\s+(?:also\s+|still\s+)?(?:need|want|have\s+to)\b|(?!{_NO_VERB})[a-z]+\s(?!(?:is|was|are|were|has|had|it|fails?|works?|hangs|crashes|prints|says|shows|stops|exits|dies|returns|gets|takes)\b))",
    rf"{_BEGINS}(?:(?:when(?:ever)?|once|as\s+soon\s+as|before|after)\s[^.!?,;\n]{{1,80}}|to\s+(?:finish|wrap\s+up|conclude)),[\s.]+{_PLEASE}{_CHECKING}",
    rf"(?:{_BEFORE}\bthen|(?:^|[.!?]\s|\n)(?:[-*+]\s|\d{{1,3}}[.)]\s)?(?:and\s+)?(?:then|finally|lastly|last)),?\s+{_PLEASE}{_CHECKING}",
    rf"{_BEGINS}(?:if|when(?:ever)?|once|as\s+soon\s+as|in\s+case|should)\s(?!(?:i|we)\b)[^.!?,;\n]{{0,60}}?\b{_WRONG}[^.!?,;\n]{{0,40}}(?:,|\sthen\b)\s?(?:then\s+)?{_PLEASE}{_STOP}(?:\s+(?:it|everything|all|at\s+once|immediately|there|here|right\s+\w+|your\s+\w+|working))?"
    r"\s*(?=[.,;:!)\n]|$|\s(?:and|instead)\b)",
    rf"{_START}(?:finish|end|close|conclude|wrap\s+up)\s+(?:by|with)\s",
    rf"{_START}(?:check|test|lint|type-?check|review|prove|measure)\s+(?:your|everything|each|every|all)\b",
    rf"{_START}(?:stay|remain)\s+(?:on|in|with|under|below|at|local|offline|put)\b",
    rf"{_START}(?:work|change|edit|touch|modify|use|fix|test|run|look|read|commit|build|import|rely){_REST}{{1,60}}?\salone{_ENDS}",
    rf"(?:^|[.,;:(!\n\u2013\u2014]|\s-|\band|\bbut)\s?nothing\s+(?:(?:more|further|extra|additional){_ENDS}|beyond\b|besides\b)",
    rf"\bnothing\s+(?:(?:gets?|is|goes|ever|new)\s+){{0,2}}(?:merg|commit|push|deploy|releas|publish|ship|land|delet|remov|install|live|out|in)\w*\b{_REST}{{0,40}}?\b(?:without|unless|until|before)\b",
    rf"(?:{_START}|{_MAY}){_WORK}\b{_STATES}{_REST}{{1,80}}?\s(?:but\s+not|(?:everything|anything|all|whatever|any\s+\w+|files?)\s+(?:\w+\s+){{0,3}}?{_BUT})\s+(?!(?:sure|yet|that|really|only)\b)\w",
    rf"(?:{_START}|{_MAY}){_WORK}\s+(?:everything|anything|all|any\s+\w+|whatever)\s+(?:\w+\s+){{0,3}}?{_BUT}\s",
    rf"(?:{_BEGINS}|\bonly\s+|\bjust\s+)(?:everything|anything|all|all\s+files|any\s+file)\s+{_BUT}\s(?:(?!{_FINITE})[^.!?,;\n]){{1,60}}(?:[.!;]|$|\s(?:(?:may|can)\s+(?:be\s+)?{_WORK}|(?:is|are)\s+(?:fair\s+game|allowed|free)\b))",
    rf"\b{_BUT}\s{_REST}{{1,60}}?,?\s(?:you\s+(?:can|may)|feel\s+free)\b",
    rf"{_BEGINS}but\s+not\s+(?!(?:sure|yet|that|really|only|always|if|when|because|on|in|with|for|at|under|now)\b)(?:(?!{_FINITE})[^.!?,;\n]){{1,60}}[.!;]?$",
    r"\b(?:stays?|remains?|leave\s+\w+|let\s+\w+\s+stay)\s+(?:(?:exactly|just)\s+)?(?:as|the\s+way)\s+(?:it|they|that)(?:'s|\s+(?:is|are))\b(?!\s+(?:when|after|until|even|although))",
    r"\b(?:stays?|remains?|keep\b[^.,\n]{1,40})\s+as[\s-]is\b|\blet\s+(?:the\s+|our\s+|my\s+)?[\w./-]+\s+(?:be\b|alone\b)(?=\s*(?:[.,;!)\n]|$))",
    rf"{_START}not\s+(?:(?:directly\s+)?(?:on|in|to|into|onto|from)\s+(?:the\s+|our\s+|your\s+)?(?:main|master|trunk|prod\w*|live|release\w*|staging|develop|default|shared|public|protected)\b"
    r"[^.,!?\n]{0,20}(?=[.!;\n]\s|[.!;\n]?$)|(?:without|before|until)\s(?!(?:it|i|we|he|she|a|any)\b|reasons?\b)|(?:a\s+single|one)\s+(?:push|commit|merge|deploy\w*|release|edit|change|file|test|new)\b)",
    rf"{_START}keep\s+(?!in\s|getting\b|seeing\b|having\b)(?:[\w'./-]+\s+){{1,5}}?(?:small|short|simple|focused|tiny|tight|lean|local|low|clean|pinned)\b|\blimit\s+your(?:self|\s+\w+)\s+to\b",
    r"\b(?:api|schema|interfaces?|contracts?|signatures?|main|master|protocol)\s+(?:is|are)\s+(?:locked|final|settled)\b|\bset\s+in\s+stone\b",
    r"\b(?:no-?go(?:e?s)?|no-nos?|taboo|verboten|off\s+the\s+table|out\s+of\s+the\s+question|not\s+an\s+option|deal-?breakers?)\b",
    rf"\b(?:i(?:'ll|\s+will|(?:'m|\s+am)\s+going\s+to)|let\s+(?:me|us))\s+(?:\w+\s+)?(?:do|handle|make|perform|take\s+care\s+of|see\s+to)\s{_REST}{{0,30}}?\b{_STEP}\b",
    r"\bi(?:'ll|\s+will)\s+(?:commit|push|merge|release|deploy|publish|tag|rebase)\b(?!\s+to\s+(?:that|this)\b)",
    rf"\b(?:any|every|each|all|no|new|{_STEP})\s+(?:[\w-]+\s+){{0,4}}?(?:is|are|gets?|be)\s+(?:\w+\s+)?(?:done|made|handled|run|merged|pushed|deployed|approved|reviewed)\s+by\s+(?:me|us|hand)\b",
    rf"\b(?:{_STEP}|changes?|edits?|dependenc(?:y|ies))\s{_REST}{{0,40}}?\b(?:go(?:es)?|comes?|pass(?:es)?)\s+(?:through|via|past|by)\s+(?:the\s+|our\s+)?"
    r"(?:(?-i:[A-Z])\w+|@\w+|(?:[\w-]+\s+)?(?:team|leads?|review\w*|owners?|maintainers?|security|legal|qa|ci|boss|manager|dbas?|board|pull\s+requests?|prs?))\b",
    rf"\bdon\s+t\s|\bkeep\s+(?:your|all)\s+\w+\s+(?:out|away|off)\b|{_START}keep\s{_REST}{{1,40}}?\bsupport",
    "除(?:了|去|[开開])?[^\u3002\uff01\uff1f\n]{1,20}?(?:都|其[他它余餘]|其他的?|以外|之外|外)[^\u3002\uff01\uff1f\n]{0,8}?(?:可以?|能|[随隨]便|[随隨]意)(?:[改动動碰[删刪编編]|修改|[编編][辑輯]|更[改新]|[变變]更)|以外的?都(?:可以?|能)(?:[改动動碰删刪]|修改)",
    r"(?:(?:(?:提交|推送|合[并併]|部署|[发發]布|上[线線]|修改|[删刪]除|修[复復]|重[构構]|[开開][发發])完?|完成|[结結]束|[做改写寫修弄干幹搞][完好])了?[之以]?[前后後]|做完|改完|[写寫]完|最[后後])[\uff0c,]?(?:都|再|要|先|需要?|[请請]){0,2}"
    r"(?:跑|[运運]行|[执執]行|[检檢]查|[测測][试試]|[验驗]|格式化|通知|告[诉訴])(?![过過了还還仍就也没沒不都]|失[败敗]|出[错錯]|[报報][错錯])",
    r"(?:如果|若|要是|一旦|万一|萬一|[错錯败敗题題])[^\u3002\uff01\uff1f\n]{0,20}?(?:就|则|則|[请請]|立即|[马馬]上|[\uff0c,])(?:先|立即|[马馬]上|[请請])?(?:停(?![了电電机機])|中止|回[滚滾]|撤[销銷]|[还還]原)(?![^\u3002\uff0c,\n]{0,3}了)",
)
POLITE = re.compile(r"(?i)(?<!how\s)(?<!why\s)\b(?:can|could|will|would)\s+you\s+(?P<asked>[^?!\n]{1,200})\?")
"""A request in the form of a question."""
AGREED = re.compile(
    r"(?i)\s?,?\s?\b(?:ok|okay|alright|all\s+right|please|pls|plz|thanks|got\s+it|understood|(?:can|could|will|would)\s+you)\s?\?"
)
"""Words after a request that do not make it a question."""
ASKED = re.compile("(?im)(?:" + "|".join(_ASKED) + r")(?![^.!?\n\u3002]*(?:[?\uff1f]|[\u5417\u55ce]))")
"""Requests for later and limits of the work in plain words, which bind by their form. For texts with single spaces."""
DUTY = re.compile(f"(?im){_SOFT}")
"""More words of duty, for rules: in a rule file, every possible duty counts."""
