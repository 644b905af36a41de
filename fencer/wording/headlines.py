"""How `fencer explain` begins, for each verdict."""

from __future__ import annotations

from fencer.core.model import Verdict

STILL_FENCED = "{node} is still fenced: {says}."
"""Where something else than the fence itself is decided, as in the log."""

HEADLINES: dict[Verdict, str] = {
    Verdict.HEALTHY: "{node} is not fenced, and need not be: it is healthy.",
    Verdict.WAIT: "{node} is not fenced yet: {says}.",
    Verdict.REFUSE: "{node} is not fenced: {says}.",
    Verdict.STOP_FIRST: "{node} is not fenced yet: {says}, so its power has to be cut first.",
    Verdict.DISCARD_FIRST: "{node} is not fenced yet: {says}, so that has to be thrown away first.",
    Verdict.FENCE: "{node} is not fenced yet, and is about to be: {says}.",
    Verdict.FENCED: "{node} is fenced: {says}.",
    Verdict.RECOVERING: "{node} is coming back: {says}.",
    Verdict.OFF: "{node} is not fenced, and need not be: {says}.",
    Verdict.UNFENCE: "{node} is fenced, and the fence is about to come off: {says}.",
}
