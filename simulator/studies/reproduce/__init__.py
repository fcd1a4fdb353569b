"""reproduce: published figures, run again from bundled specifications, with every assumption beside them.

    >>> from simulator.studies.reproduce import reproduce
    >>> [found] = reproduce(["vllm-memory"])
    >>> found.tables()[0].rows[3]
    ('vLLM, requests at once', '30.4', '33.2', '+9.2%', 'within 15%', 'yes')

Read `spec` for what a specification may say and `specs/*.yaml` for the bundled ones; `workloads` and `stated` are what
they are made of, `running` and `measures` what is done with them, `findings` how they are judged. `verdict` asks where
"10-20x" holds; it has nothing published to miss.
"""

from simulator.studies.reproduce.answers import NAMES, Answer, Reproduction, Verdict, reproduce

__all__ = ["NAMES", "Answer", "Reproduction", "Verdict", "reproduce"]
