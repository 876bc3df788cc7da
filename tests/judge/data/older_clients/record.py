"""Record the cassettes beside this file, with the clients that are installed. README.md says which ones and how.

A scripted server answers, not a model.
"""

import sys
import warnings

from support.llm_server import LLMServer
from support.older_clients import ANSWER, ERAS, MODELS, STYLES, assess, chat_model, path_of

from pytest_ctxeval._judge.cassette.transport import routed


def main(era: str) -> None:
    with routed(), LLMServer() as server:
        server.reply = ANSWER
        for client in MODELS:
            for style in STYLES:
                server.reject_response_format = style == "tool"
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of a form that is not taken, which is meant
                    assess(chat_model(client, server), path_of(era, client, style), style=style, mode="all")


if __name__ == "__main__":
    if sys.argv[1:] not in [[era] for era in ERAS]:
        sys.exit(f"usage: record.py {'|'.join(ERAS)}")
    main(sys.argv[1])
