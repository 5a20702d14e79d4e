#!/usr/bin/env python3
"""The check of the map finds each planted page, link or picture that a reader would not find, and lets through a whole map."""

import os
import tempfile
import unittest

from check_map import GROUPS, IMAGES, MAP, violations

PAGES = ["first.md", "second.md", "third.md", "fourth.md", "fifth.md", "sixth.md", "last.md"]
HEADINGS = {name: f"The page {name[:-3]}" for name in PAGES}


def following(name):
    after = PAGES[PAGES.index(name) + 1:]
    return f"Next: [{HEADINGS[after[0]]}]({after[0]})" if after else "Next: [The pages](README.md)"


PICTURE = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><title>A square</title><defs/>'
           '<rect fill="#ffffff"/></svg>\n')
TREE = {
    "README.md": "# Read me\n\n[all pages](docs/README.md)\n",
    MAP: "# The pages\n" + "".join(f"\n## {group}\n\n| page | says |\n| --- | --- |\n| [{name}]({name}) | something |\n"
                                   for group, name in zip(GROUPS, PAGES)),
    **{f"docs/{name}": f"# {HEADINGS[name]}\n\nText.\n\n{following(name)}\n" for name in PAGES},
    f"{IMAGES}/square.svg": PICTURE,
}
TREE["docs/first.md"] = TREE["docs/first.md"].replace("Text.", "![a square](images/square.svg)")


class MapTest(unittest.TestCase):
    def check(self, changed):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**TREE, **changed}.items():
                if text is None:
                    continue
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(violations(root))

    def assert_found(self, path, old, new, *rules):
        self.assertIn(old, TREE[path])
        self.assertEqual(self.check({path: TREE[path].replace(old, new, 1)}), list(rules))

    def test_nothing_is_found_in_a_whole_map(self):
        self.assertEqual(self.check({}), [])

    def test_pages_that_nobody_finds(self):
        self.assert_found("README.md", "docs/README.md", "docs/first.md", "README.md:1: it does not link docs/README.md")
        self.assertEqual(self.check({"docs/lost.md": "# Lost\n"}), ["docs/lost.md:1: docs/README.md does not list it"])

    def test_rows_of_the_map(self):
        row = "| [second.md](second.md) | something |"
        self.assert_found(MAP, row, row + "\n" + row, "docs/README.md:14: second.md is listed twice")
        self.assert_found(MAP, row, row + "\n| [none.md](none.md) | something |",
                          "docs/README.md:14: none.md is no page with a heading")
        self.assert_found(MAP, row, row + "\n| [first.md](third.md) | something |",
                          "docs/README.md:14: first.md leads to third.md")
        self.assertIn("docs/README.md:13: what second.md says is missing",
                      self.check({MAP: TREE[MAP].replace(row, "| [second.md](second.md) |  |")}))

    def test_groups_of_the_map(self):
        wrong = f"docs/README.md:1: the groups are not {', '.join(GROUPS)}"
        self.assert_found(MAP, "## Clients", "## Programs", wrong)
        self.assert_found(MAP, "## Recipes\n", "## Clients\n\n## Recipes\n", wrong)
        self.assertEqual(self.check({MAP: TREE[MAP] + "\n## More\n"}), [wrong, "docs/README.md:1: the group More has no page"])

    def test_links_to_the_next_page(self):
        wanted = following("first.md")
        for new in ["", "Next: [The page second](third.md)", "Next: [Second](second.md)", wanted + "\n\nMore text."]:
            with self.subTest(last=new):
                found = self.check({"docs/first.md": TREE["docs/first.md"].replace(wanted, new)})
                self.assertEqual([line.split(": ", 1)[1] for line in found], [f"the last line is not {wanted}"])
        self.assert_found("docs/last.md", "README.md", "first.md",
                          "docs/last.md:5: the last line is not Next: [The pages](README.md)")

    def test_pictures(self):
        path = f"{IMAGES}/square.svg"
        self.assert_found("docs/first.md", "images/square.svg", "images/circle.svg", f"{path}:1: no page shows it")
        self.assert_found("docs/first.md", "a square", "", "docs/first.md:3: the picture images/square.svg has no text")
        self.assert_found(path, "A square", " ", f"{path}:1: it has no title")
        self.assert_found(path, "viewBox", "box", f"{path}:1: it is no SVG with a viewBox")
        background = f"{path}:1: its first shape is no white background, without which nobody can read it on a dark page"
        self.assert_found(path, "#ffffff", "#000000", background)
        self.assert_found(path, '<rect fill="#ffffff"/>', "", background)
        self.assertIn(f"{path}:1: it is not well-formed", self.check({path: PICTURE.replace("</svg>", "")})[0])


if __name__ == "__main__":
    unittest.main()
