"""What stands between users and the router: nginx, with a list of what users may ask for, and the list of models.

The router's own port serves its control plane to whoever reaches it: `POST /workers` and the prompts of all users go to
one's own server. So the router listens on loopback, and nothing of what a client writes around its body goes on to it:
not the path, not the query, and of the headers only four.
"""

from __future__ import annotations

import hashlib
import json

USERS_PORT = 8080
OPERATOR_PORT = 8082
"""For the operator and the kubelet: is the router ready, which workers has it, is the front itself there."""
ROUTER_PORT = 30080
"""Of smg, on loopback."""

CONFIG_FOLDER = "/etc/kvfence"
"""Where the ConfigMap is in both containers. The whole folder: a file that is mounted alone is never updated."""
CONF_FILE, MODELS_FILE, WORKERS_FILE = "nginx.conf", "models.json", "workers.json"
TEMPORARY_FOLDER = "/tmp"  # noqa: S108 - in the container, a volume of its own

BODY_MIB = 64
"""The longest request. A million tokens are some 6 MiB of text."""
REQUEST_SECONDS = 1800
"""The longest request that the router waits for, streaming included; smg's own default."""

# The lowest level of error_log that is used is `crit`: below it nginx quotes the request, and people put keys there.
# Request bodies are not buffered: prompts do not get onto a disk.
# A request is judged by its line as it was sent, before anything in it is decoded or merged.
_CONF = r"""# Written by kvfence. Every change to it starts new router pods.
daemon off;
pid TEMPORARY_FOLDER/nginx.pid;
worker_processes 2;
error_log stderr crit;

events {
    worker_connections 4096;
}

http {
    access_log off;
    server_tokens off;
    default_type application/json;
    client_body_temp_path TEMPORARY_FOLDER/body;
    proxy_temp_path TEMPORARY_FOLDER/proxy;
    fastcgi_temp_path TEMPORARY_FOLDER/fastcgi;
    uwsgi_temp_path TEMPORARY_FOLDER/uwsgi;
    scgi_temp_path TEMPORARY_FOLDER/scgi;

    client_max_body_size BODY_MIBm;
    client_header_timeout 10s;
    client_body_timeout 60s;
    send_timeout 60s;
    reset_timedout_connection on;

    # The list of models changes under nginx, and each request gets it as it is.
    etag off;
    if_modified_since off;
    max_ranges 0;

    proxy_http_version 1.1;
    proxy_pass_request_headers off;
    proxy_set_header Content-Type $content_type;
    proxy_set_header Accept $http_accept;
    proxy_set_header traceparent $http_traceparent;
    proxy_set_header tracestate $http_tracestate;
    proxy_request_buffering off;
    proxy_buffering off;
    proxy_max_temp_file_size 0;
    proxy_next_upstream off;
    proxy_redirect off;
    proxy_connect_timeout 5s;
    proxy_send_timeout 60s;
    proxy_read_timeout READ_SECONDSs;
    # Addresses of pods are nobody's business, and an engine does not steer the front.
    proxy_hide_header x-smg-routed-worker-id;
    proxy_hide_header Set-Cookie;
    proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering X-Accel-Charset;
    proxy_hide_header X-Accel-Redirect;

    map $request $route {
        default none;
        "~^POST /v1/completions(\?[^ ]*)? HTTP/1\.1$" completions;
        "~^POST /v1/chat/completions(\?[^ ]*)? HTTP/1\.1$" chat;
        "~^(GET|HEAD) /v1/models(\?[^ ]*)? HTTP/1\.1$" models;
        "~^[A-Z]+ /v1/(chat/)?completions(\?[^ ]*)? HTTP/1\.1$" "POST";
        "~^[A-Z]+ /v1/models(\?[^ ]*)? HTTP/1\.1$" "GET, HEAD";
        "~^[A-Z]+ /v1/(completions|chat/completions|models)(\?[^ ]*)? HTTP/1\.0$" old;
    }
    map $request $inspection {
        default none;
        "~^GET /readiness HTTP/1\.1$" readiness;
        "~^GET /workers HTTP/1\.1$" workers;
        "~^GET /front HTTP/1\.1$" front;
    }

    server {
        listen USERS_PORT;
        error_page 404 @nowhere;
        error_page 405 @method;
        error_page 413 @long;
        error_page 426 @old;
        error_page 502 @unavailable;
        error_page 504 @late;

        if ($route = none) { return 404; }
        if ($route = old) { return 426; }
        if ($route = "POST") { return 405; }
        if ($route = "GET, HEAD") { return 405; }

        location = /v1/completions {
            set $args "";
            proxy_pass http://127.0.0.1:ROUTER_PORT/v1/completions;
        }
        location = /v1/chat/completions {
            set $args "";
            proxy_pass http://127.0.0.1:ROUTER_PORT/v1/chat/completions;
        }
        location = /v1/models {
            add_header Cache-Control no-store always;
            alias CONFIG_FOLDER/models.json;
        }
        location / { return 404; }

        location @nowhere { return 404 NOWHERE; }
        location @method {
            add_header Allow $route always;
            return 405 METHOD;
        }
        location @long { return 413 LONG; }
        location @old {
            add_header Upgrade "HTTP/1.1" always;
            return 426 OLD;
        }
        location @unavailable { return 502 UNAVAILABLE; }
        location @late { return 504 LATE; }
    }

    server {
        listen OPERATOR_PORT;
        error_page 404 @nowhere;

        if ($inspection = none) { return 404; }

        location = /readiness { proxy_pass http://127.0.0.1:ROUTER_PORT/readiness; }
        location = /workers { proxy_pass http://127.0.0.1:ROUTER_PORT/workers; }
        location = /front { return 200 '{"status":"ok"}'; }
        location / { return 404; }

        location @nowhere { return 404 NOWHERE; }
    }
}
"""

_ERRORS = {
    "NOWHERE": ("not_found", "This path is not served here. See /v1/models, /v1/completions, /v1/chat/completions."),
    "METHOD": ("method_not_allowed", "This path is not served with this method. See the header Allow."),
    "LONG": ("request_too_large", f"A request has {BODY_MIB} MiB at most."),
    "OLD": ("upgrade_required", "Ask with HTTP/1.1."),
    "UNAVAILABLE": ("router_unavailable", "The router of this pool does not answer. Try again in a few seconds."),
    "LATE": ("router_late", "The router of this pool did not answer in time."),
}


def nginx_conf() -> str:
    """Return the configuration of nginx. It is the same for all pools."""
    values = {
        "TEMPORARY_FOLDER": TEMPORARY_FOLDER,
        "CONFIG_FOLDER": CONFIG_FOLDER,
        "BODY_MIB": str(BODY_MIB),
        "READ_SECONDS": str(REQUEST_SECONDS + 60),  # the router's own answer to a late request comes first
        "USERS_PORT": str(USERS_PORT),
        "OPERATOR_PORT": str(OPERATOR_PORT),
        "ROUTER_PORT": str(ROUTER_PORT),
        **{f" {name};": f" '{_error(*error)}';" for name, error in _ERRORS.items()},
    }
    conf = _CONF
    for name, value in values.items():
        conf = conf.replace(name, value)
    return conf


def conf_digest() -> str:
    """Return what tells one configuration from another; nginx does not read it again by itself."""
    return hashlib.sha256(nginx_conf().encode()).hexdigest()[:16]


def models_json(served_name: str, advertised_tokens: int | None) -> str:
    """Return the answer to `GET /v1/models`, as OpenAI has it and with the context length that is on offer.

    Args:
        served_name: the name that clients ask for.
        advertised_tokens: the cap; `None` before admission, and then the list is empty.
    """
    model = {
        "id": served_name,
        "object": "model",
        "created": 0,
        "owned_by": "kvfence",
        "max_model_len": advertised_tokens,
    }
    return json.dumps({"object": "list", "data": [] if advertised_tokens is None else [model]}) + "\n"


def _error(code: str, message: str) -> str:
    """Return an error as clients of OpenAI's API read it."""
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}})
