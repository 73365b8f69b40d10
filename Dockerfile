# regard serve in a container: docker build -t regard . && docker run -e REGARD_API_KEY=… -p 8000:8000 -v ./runs:/models:ro regard /models/gpt
FROM python:3.11.11-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# The C kernels are compiled on the machine that runs them, at the first start; here the wheels are collected.
WORKDIR /source
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/regard \
    && /opt/regard/bin/pip install --no-cache-dir --requirement requirements.lock \
    && /opt/regard/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11.11-slim-bookworm
# gcc builds the kernels for the processor that is there.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc=4:12.2.0-3 libc6-dev=2.36-9+deb12u10 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 regard
COPY --from=build /opt/regard /opt/regard
USER 10001
ENV PATH=/opt/regard/bin:$PATH REGARD_CACHE=/home/regard/.cache PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["regard", "serve", "--host", "0.0.0.0"]
