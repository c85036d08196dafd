"""The docs page works without the internet: every file of it is ours to serve."""

import re
from urllib.parse import urljoin, urlsplit

import httpx
import pytest


def references(page: str) -> set[str]:
    return set(re.findall(r"""(?:src|href)=["']([^"']+)["']""", page))


@pytest.fixture
def page(shared_server):
    answer = httpx.get(f"{shared_server}/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer


class TestPage:
    def test_all_it_references_is_served_by_us(self, shared_server, page):
        found = references(page.text)
        assert len(found) >= 5
        for reference in found:
            url = urljoin(str(page.url), reference)
            assert urlsplit(url).netloc == urlsplit(shared_server).netloc
            answer = httpx.get(url)
            assert answer.status_code == 200
            assert answer.content

    def test_the_browser_may_ask_nobody_else(self, page):
        policy = dict(
            part.strip().partition(" ")[::2]
            for part in page.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert {"script-src", "style-src", "connect-src", "img-src"} <= policy.keys()
        for sources in policy.values():
            assert set(sources.split()) <= {"'self'", "'none'", "'unsafe-inline'", "data:"}
        assert "'unsafe-inline'" not in policy["script-src"]

    def test_no_script_stands_in_the_page(self, page):
        assert re.findall(r"<script(?![^>]*src=)", page.text) == []

    def test_the_stylesheet_asks_for_nothing_further(self, shared_server):
        css = httpx.get(f"{shared_server}/docs/static/swagger-ui.css").text
        urls = re.findall(r"url\(\s*['\"]?([^)'\"]+)", css)
        assert urls
        assert [url for url in urls if not url.startswith("data:")] == []
        assert "@import" not in css

    def test_the_validator_on_the_internet_is_switched_off(self, shared_server):
        script = httpx.get(f"{shared_server}/docs/static/docs.js").text
        assert "validatorUrl: null" in script
        assert 'url: "/openapi.json"' in script


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "kind", "marks"),
        [
            ("swagger-ui-bundle.js", "text/javascript", b"SwaggerUIBundle"),
            ("swagger-ui.css", "text/css", b".swagger-ui"),
            ("docs.js", "text/javascript", b"SwaggerUIBundle("),
            ("favicon.svg", "image/svg+xml", b"<svg"),
        ],
    )
    def test_they_are_what_they_are_called_and_cached_by_content(
        self, shared_server, name, kind, marks
    ):
        url = f"{shared_server}/docs/static/{name}"
        first = httpx.get(url)
        assert first.headers["content-type"].partition(";")[0] == kind
        assert marks in first.content
        again = httpx.get(url, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")

    @pytest.mark.parametrize("name", ["redoc.standalone.js", "docs.html", "..%2Fdocs.py", "%00"])
    def test_nothing_else_is_served(self, shared_server, name):
        assert httpx.get(f"{shared_server}/docs/static/{name}").status_code == 404
