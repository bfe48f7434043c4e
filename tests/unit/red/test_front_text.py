"""What no behaviour of a front with one router shows: it would not send a prompt to a second one either."""

from __future__ import annotations

import re

from kvfence.render.front import nginx_conf


def test_the_front_has_one_place_to_send_a_prompt_to_and_never_tries_a_next() -> None:
    conf = nginx_conf()
    assert not re.search(r"^\s*upstream\b", conf, re.MULTILINE)
    assert set(re.findall(r"proxy_pass (http://[^/;]+)", conf)) == {"http://127.0.0.1:30080"}
    assert re.findall(r"proxy_next_upstream \w[^;]*;", conf) == ["proxy_next_upstream off;"]
