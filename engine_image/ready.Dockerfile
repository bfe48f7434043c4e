# A ready-made engine: your own SGLang image with kvfence-engine in it, to be run without an operator.
#
#   docker build --tag my-sglang-kvfence --build-arg BASE=my-sglang --build-arg ENGINE=kvfence-engine:VERSION \
#       --file engine_image/ready.Dockerfile engine_image
#
# BASE is any image with sglang as a Python package for python3; ENGINE is the injection image (see Dockerfile).
# Neither has a default: which SGLang runs, and which kvfence-engine stands in front of it, is for you to say.
ARG BASE
ARG ENGINE

FROM ${ENGINE} AS engine

FROM ${BASE}
COPY --from=engine /kvfence-engine /kvfence
ENTRYPOINT ["python3", "/kvfence/kvfence_engine"]
