import { expect, test } from 'bun:test'
import { createDocs } from './docs-pages.ts'
import { type Passage, passagesOf, searchDocs } from './docs-search.ts'

const passage = (heading: string, text: string, page = 'Guide'): Passage => ({
  ...{ href: `/docs/guide#${heading}`, page, heading, text },
})
const headings = (passages: readonly Passage[], query: string) =>
  searchDocs(passages, query).results.map(({ heading }) => heading)

test('splits a page at its headings, into plain text', () => {
  const html =
    '<h1 id="keys">Keys</h1><p>A <a href="/x"><code>key</code></a> &lt;b&gt;</p><h2 id="rotate-a-key">Rotate a <em>key</em></h2><p>Soon.</p>'
  expect(passagesOf('Keys', '/docs/keys', html)).toEqual([
    { href: '/docs/keys', page: 'Keys', heading: 'Keys', text: 'A key <b>' },
    { href: '/docs/keys#rotate-a-key', page: 'Keys', heading: 'Rotate a key', text: 'Soon.' },
  ])
})

test('finds passages with all words, in headings before text, whole words before parts of them', () => {
  const all = [
    passage('Backups', 'A copy of the keys.'),
    passage('Monkeys', 'Nothing.'),
    passage('Limits', 'Nothing of the sort.'),
    passage('Rotate keys', 'A new secret.'),
    passage('Secrets', 'Nothing.', 'Keys'),
  ]
  expect(headings(all, 'KEYS')).toEqual(['Rotate keys', 'Secrets', 'Monkeys', 'Backups'])
  expect(headings(all, 'secret  keys').sort()).toEqual(['Rotate keys', 'Secrets'])
  expect(headings(all, 'keys absent')).toEqual([])
  expect(headings(all, '')).toEqual([])
})

test('puts pages whose title has all words first', () => {
  const own = (page: string) => passage(page, '', page)
  const all = [
    passage('Errors of the errors page', 'errors errors', 'Errors'),
    passage('Spend limit', 'a spend limit', 'Guide'),
    own('Rate limits'),
    own('Errors'),
    own('Terrors'),
  ]
  expect(headings(all, 'error')).toEqual(['Errors', 'Errors of the errors page', 'Terrors'])
  expect(headings(all, 'limit')).toEqual(['Rate limits', 'Spend limit'])
  // Not a title that lacks one of them.
  expect(headings([...all, passage('Rate limits', 'spend', 'Rate limits')], 'spend limit')).toEqual([
    'Spend limit',
    'Rate limits',
  ])
})

test('shows the text around the match, with the match as every second piece', () => {
  const text = `${'before '.repeat(40)}a Spend limit (daily)${' after'.repeat(60)}`
  const [result] = searchDocs([passage('Money', text)], 'spend').results
  const [lead = '', match, rest = ''] = result?.excerpt ?? []
  expect([lead.startsWith('… before'), lead.endsWith('before a '), match]).toEqual([true, true, 'Spend'])
  expect([rest.startsWith(' limit (daily) after'), rest.endsWith(' after …')]).toEqual([true, true])
  expect(result?.excerpt.join('').length).toBeLessThan(200)
  // A match in the heading alone: the text from its start, signs of patterns taken literally.
  expect(searchDocs([passage('a.*b(', 'Short.')], '.*b(').results[0]?.excerpt).toEqual(['Short.'])
})

test('limits the query and the results', () => {
  const many = Array.from({ length: 30 }, (_, at) => passage(`Key ${at}`, ''))
  const { found, results } = searchDocs(many, 'key')
  expect([found, results.length]).toEqual([30, 20])
  expect(searchDocs(many, 'x'.repeat(5_000)).query).toHaveLength(100)
})

test('searches guides and operations of the API, and links to where they are', async () => {
  const { find } = await createDocs('1.0.0')()
  const search = (text: string) => {
    const page = find('/docs/search', new URLSearchParams({ q: text }))
    return page?.kind === 'docs' ? (page.data.search?.results ?? []) : []
  }
  const htmlAt = (path: string) => {
    const page = find(path, new URLSearchParams())
    return page?.kind === 'docs' ? page.data.html : ''
  }
  expect(search('Insufficient_Balance')[0]?.href).toBe('/docs/errors#insufficient_balance')
  const operation = search('POST /api/projects/{id}/keys')[0]
  expect(operation).toMatchObject({ page: 'Management API operations', heading: 'POST /api/projects/{id}/keys' })
  expect(search('creates api key').map(({ href }) => href)).toContain(operation?.href ?? '')
  for (const { href } of [...search('spend limit'), ...search('key')]) {
    const [path = '', id] = href.split('#')
    expect(htmlAt(path)).toContain(id === undefined ? '<h1' : `id="${id}"`)
  }
})

test('every page of the menu exists and lists headings that it has, once', async () => {
  const { find, groups } = await createDocs('1.0.0')()
  const links = groups.flatMap((group) => group.links)
  expect(groups[0]?.links[0]).toEqual({ href: '/docs/five-minutes', label: 'Tutorial: five minutes' })
  expect(links.length).toBeGreaterThan(40)
  for (const { href, label } of links) {
    const page = find(href, new URLSearchParams())
    if (page?.kind !== 'docs') throw new Error(`there is no page ${href}`)
    const { html, contents } = page.data
    expect([href, page.title]).toEqual([href, label])
    const ids = contents.map(({ id }) => id)
    expect([href, ids.filter((id) => html.split(`id="${id}"`).length !== 2)]).toEqual([href, []])
  }
  const errors = find('/docs/errors', new URLSearchParams())
  const listed = errors?.kind === 'docs' ? errors.data.contents : []
  expect(listed[0]).toEqual({ id: 'invalid_request', label: 'INVALID_REQUEST', isSub: false })
})

test('starts with tasks and what each page is for, without a list of contents', async () => {
  const { find, groups } = await createDocs('1.0.0')()
  const home = find('/docs', new URLSearchParams())
  if (home?.kind !== 'docs') throw new Error('there is no start page')
  expect(home.data).toMatchObject({ title: 'Documentation', contents: [], isHome: true })
  expect(home.data.html).toContain('<a href="/docs/troubleshooting">Troubleshooting</a>')
  // Every page of the menu except the operations of the management API, each with a sentence.
  const items = home.data.html.split('<li>').length - 1
  expect(items).toBe(groups.flatMap(({ links }) => links).length - 1)
  expect(home.data.html.match(/<li><a href="[^"]+">[^<]+<\/a><br \/>\s*\S/g)).toHaveLength(items)
})

test('gives the cells of narrow tables the titles of their columns', async () => {
  const { find } = await createDocs('1.0.0')()
  const page = find('/docs/troubleshooting', new URLSearchParams())
  expect(page?.kind === 'docs' && page.data.html).toContain('<td data-label="what to do">stop it, or start with')
})
