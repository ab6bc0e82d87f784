# Three images; docs/containers.md has the commands, also for Apptainer.
#   docker build --target core .    without torch: baselines, endpoints, scores and reports
#   docker build --target hf .      models of Hugging Face on CPUs and CUDA GPUs, with fine-tuning
#   docker build --target vllm .    hf, and vLLM in an environment of its own
FROM python:3.11-slim-bookworm AS wheel
WORKDIR /source
COPY . .
RUN pip install --no-cache-dir -c constraints.txt build hatchling \
    && python -m build --no-isolation --wheel --outdir /dist

FROM python:3.11-slim-bookworm AS core
COPY constraints.txt /opt/constraints.txt
COPY --from=wheel /dist /opt/dist
RUN wheel="$(ls /opt/dist/*.whl)" \
    && pip install --no-cache-dir -c /opt/constraints.txt "${wheel}[baselines,endpoints,metrics]" \
    && useradd --create-home --uid 1000 harness
USER 1000
WORKDIR /home/harness
ENTRYPOINT ["harness"]
CMD ["--help"]

FROM core AS hf
USER 0
RUN wheel="$(ls /opt/dist/*.whl)" \
    && pip install --no-cache-dir -c /opt/constraints.txt "${wheel}[hf,peft,retrieval,translate]"
USER 1000

# vLLM pins what the harness leaves open: -o python=/opt/vllm/bin/python starts its server.
FROM hf AS vllm
USER 0
RUN python -m venv /opt/vllm \
    && /opt/vllm/bin/pip install --no-cache-dir vllm==0.32.0
USER 1000
