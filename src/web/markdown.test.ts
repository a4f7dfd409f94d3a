import { expect, test } from 'bun:test'

// Not by static imports, because the browser's types that the pages use must not leak into the server's.
const load = async <Module>(name: string): Promise<Module> => await import(name)
type Render = (element: object) => string
const { h } = await load<{ h(component: unknown, properties: object): object }>('preact')
const { renderToString } = await load<{ renderToString: Render }>('preact-render-to-string')
const { Markdown } = await load<{ Markdown: unknown }>(`${import.meta.dir}/pages/markdown.tsx`)

/** Without the element around it, and without the button and attributes of code. */
function html(text: string): string {
  return renderToString(h(Markdown, { text }))
    .replace(/^<div class="markdown">|<\/div>$/g, '')
    .replace(/<button.*?<\/button>/gs, '')
    .replace(/ (class|tabindex|data-what|scope)="[^"]*"/g, '')
}

test.each([
  ['two\nlines\n\nnext', '<p>two\nlines</p><p>next</p>'],
  ['# Title\ntext', '<h3>Title</h3><p>text</p>'],
  ['**bold** and *it* and ~~no~~', '<p><strong>bold</strong> and <em>it</em> and <del>no</del></p>'],
  ['**bold with *it* inside**', '<p><strong>bold with <em>it</em> inside</strong></p>'],
  ['snake_case_name and 2 * 3 * 4', '<p>snake_case_name and 2 * 3 * 4</p>'],
  ['`a *b*` and ``x ` y``', '<p><code>a *b*</code> and <code>x ` y</code></p>'],
  ['- a\n- b\n  - c', '<ul><li>a</li><li><p>b</p><ul><li>c</li></ul></li></ul>'],
  ['3. c\n4. d', '<ol start="3"><li>c</li><li>d</li></ol>'],
  ['It was in\n1984. Or later.', '<p>It was in\n1984. Or later.</p>'],
  ['> said\n> twice\n\nyes', '<blockquote><p>said\ntwice</p></blockquote><p>yes</p>'],
  [
    '```js\nif (a < b) {}\n\n# no\n```\nafter',
    '<div><pre><code>if (a &lt; b) {}\n\n# no</code></pre></div><p>after</p>',
  ],
  ['a\n\n---\nb', '<p>a</p><hr/><p>b</p>'],
  [
    '| a | b |\n|---|:-:|\n| 1 | x \\| y |',
    '<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>x | y</td></tr></tbody></table></div>',
  ],
  ['[docs](https://example.com/a)', '<p>docs (https://example.com/a)</p>'],
  ['[https://example.com/a](https://example.com/a)', '<p>https://example.com/a</p>'],
  ['see https://example.com/a.', '<p>see https://example.com/a.</p>'],
  ['\\*not\\* emphasis', '<p>*not* emphasis</p>'],
])('%j', (text, expected) => {
  expect(html(text)).toBe(expected)
})

// A stream can end anywhere.
test.each([
  ['```js\nlet a', '<div><pre><code>let a</code></pre></div>'],
  ['**bol', '<p>**bol</p>'],
  ['[docs](https://exam', '<p>[docs](https://exam</p>'],
  ['`cod', '<p>`cod</p>'],
])('unfinished: %j', (text, expected) => {
  expect(html(text)).toBe(expected)
})

test.each([
  ['<script>alert(1)</script>', '<p>&lt;script>alert(1)&lt;/script></p>'],
  ['<img src=x onerror=alert(1)>', '<p>&lt;img src=x onerror=alert(1)></p>'],
  ['[x](javascript:alert(1))', '<p>[x](javascript:alert(1))</p>'],
  ['[x](javascript:alert`1`)', '<p>x (javascript:alert`1`)</p>'],
  ['[x](data:text/html,<b>)', '<p>x (data:text/html,&lt;b>)</p>'],
  ['[x](/console/keys)', '<p>x (/console/keys)</p>'],
  ['![pixel](https://example.com/p.png)', '<p>pixel (https://example.com/p.png)</p>'],
  ['[x](https://a.b/"onclick="c)', '<p>x (https://a.b/&quot;onclick=&quot;c)</p>'],
])('nothing of %j becomes an element or a link', (text, expected) => {
  expect(html(text)).toBe(expected)
})

test('long and deep texts are parsed, quotes and lists to a depth of eight', () => {
  for (const part of ['*a ', '**a', '`', '[', '> ', '- ', '_a', '| ', '~~', '- - ', '*a*b']) {
    expect(html(part.repeat(20_000)).length).toBeGreaterThan(0)
  }
  expect(html(`${'> '.repeat(100)}deep`).match(/<blockquote>/g)?.length).toBeLessThanOrEqual(8)
})
