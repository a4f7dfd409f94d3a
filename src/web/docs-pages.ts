// Documentation pages: the repository's Markdown at /docs/…, with docs/README.md as the first one, the operations of the
// management API at /docs/api, made from its OpenAPI document, and a search in both at /docs/search. The texts are ours, so
// their HTML is trusted.

import { openApiDocument } from '../api/open-api.ts'
import { operations } from '../api/operations.ts'
import { readDocs } from './docs-files.ts'
import { type Passage, passagesOf, plainText, searchDocs } from './docs-search.ts'
import type { DocsContent, DocsData, DocsLink, Page } from './page-data.ts'

const apiPath = '/docs/api'
const apiTitle = 'Management API operations'
const searchPath = '/docs/search'
/** The start page. */
const homeFile = 'README'

/** In the order of the menu; a folder that is not named here comes last. */
const groups: readonly (readonly [folder: string, title: string])[] = [
  ['', 'Start'],
  ['recipes', 'Recipes'],
  ['reference', 'Reference'],
  ['operate', 'Operate'],
  ['coming-from', 'Migrate'],
]

/** They come first in their group, in this order; the other pages follow by title. */
const firstPages = [
  ...[
    '/docs/five-minutes',
    '/docs/first-hour',
    '/docs/troubleshooting',
    '/docs/errors',
    '/docs/sandbox',
    '/docs/security',
  ],
  ...['/docs/recipes/README', '/docs/recipes/agents', '/docs/recipes/claude-code', '/docs/recipes/codex'],
  ...['/docs/reference/api', '/docs/reference/management-api', apiPath, '/docs/reference/cli'],
  ...['/docs/reference/configuration', '/docs/operate/deploy', '/docs/operate/observe', '/docs/operate/alerts'],
]

export interface Docs {
  /** The menu: all pages, in groups. */
  readonly groups: DocsData['groups']
  /** Returns the page at a path; undefined = there is none. */
  find(path: string, query: URLSearchParams): Page | undefined
}

/** The texts are read when the first page is opened. */
export function createDocs(version: string): () => Promise<Docs> {
  let opened: Promise<Docs> | undefined
  return () => {
    opened ??= readDocs().then((texts) => openDocs(texts, version))
    return opened
  }
}

function openDocs(texts: ReadonlyMap<string, string>, version: string): Docs {
  const groupsOfLinks = menuOf(texts)
  let api: OpenApi | undefined
  let passages: readonly Passage[] | undefined
  const readApi = () => {
    api ??= openApiDocument(Object.values(operations), version) as OpenApi
    return api
  }
  const readPassages = () => {
    passages ??= [
      ...[...texts].flatMap(([path, text]) => {
        const file = path.replace(/\.md$/, '')
        return passagesOf(titleOf(text, file), pathOf(file), htmlOf(text, file))
      }),
      ...passagesOf(apiTitle, apiPath, `<h1 id="">${apiTitle}</h1>${apiIntro}`),
      ...apiRows(readApi()).map(({ path, method, operation }) => ({
        href: `${apiPath}#${operation.operationId}`,
        page: apiTitle,
        heading: `${method} ${path}`,
        text: textOf(operation),
      })),
    ]
    return passages
  }
  const find: Docs['find'] = (path, query) => {
    const name = path.replace(/^\/docs\/?/, '').replace(/\/$/, '')
    const page = (title: string, html: string, more: Partial<DocsData> = {}): Page => {
      const contents = contentsOf(html)
      return { kind: 'docs', title, data: { title, html, path, contents, groups: groupsOfLinks, ...more } }
    }
    if (path === apiPath) return page(apiTitle, apiHtml(readApi()))
    if (path === searchPath) return page('Search', '', { search: searchDocs(readPassages(), query.get('q') ?? '') })
    const file = name === '' ? homeFile : name.replace(/\.md$/, '')
    const text = texts.get(`${file}.md`)
    if (file === homeFile)
      return page('Documentation', htmlOf(text ?? notInstalled, file), { contents: [], isHome: true })
    return text === undefined ? undefined : page(titleOf(text, file), htmlOf(text, file))
  }
  return { groups: groupsOfLinks, find }
}

const notInstalled = '# Documentation\n\nOnly the operations of the management API are installed here.'

/** Where a page has fewer headings, they are in sight. */
const contentsMin = 3
/** With more, only the upper level is listed. */
const contentsMax = 30

/** The headings of a page, for its list of contents. */
function contentsOf(html: string): readonly DocsContent[] {
  const all = [...html.matchAll(/<h([23]) id="([^"]+)">(.*?)<\/h\1>/gs)].map(([, level, id = '', inner = '']) => {
    return { id, label: plainText(inner), isSub: level === '3' }
  })
  const listed = all.length > contentsMax ? all.filter(({ isSub }) => !isSub) : all
  return listed.length < contentsMin ? [] : listed
}

function pathOf(file: string): string {
  return file === homeFile ? '/docs' : `/docs/${file}`
}

function menuOf(texts: ReadonlyMap<string, string>): DocsData['groups'] {
  const folderOf = (path: string) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : '')
  return groups.map(([folder, title]) => {
    const links = [...texts]
      .filter(([path]) => folderOf(path) === folder && path !== `${homeFile}.md`)
      .map(([path, text]): DocsLink => {
        const file = path.replace(/\.md$/, '')
        return { href: `/docs/${file}`, label: titleOf(text, file) }
      })
    const more = folder === 'reference' ? [{ href: apiPath, label: apiTitle }] : []
    return { title, links: [...links, ...more].sort(byRank) }
  })
}

const byRank = (a: DocsLink, b: DocsLink) => rankOf(a) - rankOf(b) || (a.label < b.label ? -1 : 1)

function rankOf({ href }: DocsLink): number {
  return firstPages.includes(href) ? firstPages.indexOf(href) : firstPages.length
}

function titleOf(text: string, file: string): string {
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? file
}

/** Headings get ids, and links to other pages lead to them; what is not published is named without a link. */
function htmlOf(text: string, file: string): string {
  const folder = file.includes('/') ? file.slice(0, file.lastIndexOf('/') + 1) : ''
  const seen = new Map<string, number>()
  return (
    Bun.markdown
      .html(text)
      .replace(
        /<(h[1-4])>(.*?)<\/\1>/gs,
        (_, tag: string, inner: string) => `<${tag} id="${idOf(inner, seen)}">${inner}</${tag}>`,
      )
      .replace(/<a href="([^"]*)">(.*?)<\/a>/gs, (whole, href: string, inner: string) => {
        if (/^(?:https?:|#|mailto:)/.test(href)) return whole
        const { pathname, hash } = new URL(href, `http://docs/docs/${folder}`)
        const isPage = pathname.startsWith('/docs/') && pathname.endsWith('.md') && !pathname.includes('/decisions/')
        const target = pathname.replace(/^\/docs\//, '').replace(/\.md$/, '')
        return isPage ? `<a href="${pathOf(target)}${hash}">${inner}</a>` : inner
      })
      .replace(/<img [^>]*>/g, '')
      .replace(/<table>.*?<\/table>/gs, labelCells)
      // Long names in tables break after a separator.
      .replace(/(?<=<td[^>]*>.*?<code>)[^<]+(?=<\/code>)/g, (name) => name.replace(/(?<=\w)[_./](?=[\w{])/g, '$&<wbr>'))
      // They scroll, and the keyboard must be able to.
      .replaceAll(/<(pre|table)(?=[ >])/g, '<$1 tabindex="0"')
  )
}

/** Wider tables scroll on a phone; in others the cells of a row are below each other there, each with its column's title. */
const stackedColumnsMax = 5

function labelCells(table: string): string {
  const heads = [...table.matchAll(/<th[^>]*>(.*?)<\/th>/gs)].map(([, head = '']) => plainText(head))
  if (heads.length > stackedColumnsMax) return table
  return table.replace('<table>', '<table class="stacked">').replace(/<tr>.*?<\/tr>/gs, (row) => {
    let at = 0
    return row.replace(/<td(?=[ >])/g, (cell) => `${cell} data-label="${escapeHtml(heads[at++] ?? '')}"`)
  })
}

/** As GitHub makes them, so that links with a fragment work. A heading that occurs again gets a number. */
function idOf(inner: string, seen: Map<string, number>): string {
  const id = inner
    .replace(/<[^<>]+>|&\w+;/g, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
  const count = seen.get(id) ?? 0
  seen.set(id, count + 1)
  return count === 0 ? id : `${id}-${count}`
}

interface Schema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly $ref?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
}

interface ApiOperation {
  readonly summary?: string
  readonly description?: string
  readonly operationId?: string
  readonly parameters?: readonly {
    name: string
    in: string
    required?: boolean
    description?: string
    schema?: Schema
  }[]
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

function apiRows({ paths }: OpenApi): readonly ApiRow[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
}

function textOf({ summary, description = '' }: ApiOperation): string {
  return summary ?? description
}

function apiHtml(document: OpenApi): string {
  const schemas = document.components?.schemas
  const resolve = (schema: Schema = {}): Schema =>
    schema.$ref === undefined ? schema : (schemas?.[schema.$ref.split('/').at(-1) ?? ''] ?? {})
  const byResource = Map.groupBy(apiRows(document), ({ path }) => path.split('/')[2] ?? '')
  const sections = [...byResource].map(([resource, list]) => {
    const items = list.map((row) => operationHtml(row, resolve)).join('')
    return `<h2 id="${escapeHtml(resource)}">${escapeHtml(titleCase(resource))}</h2>${items}`
  })
  return `<h1>${apiTitle}</h1>${apiIntro}${sections.join('')}`
}

const apiIntro =
  '<p>The management API changes what the gateway knows: workspaces, projects, keys, money, people. Authenticate with <code>Authorization: Bearer</code> and the management token or a personal token. <a href="/docs/reference/management-api">The guide</a> describes paging, errors, idempotency and roles; the API that models are called with is the <a href="/docs/reference/api">API reference</a>. The machine-readable document is <a href="/api/openapi.json"><code>/api/openapi.json</code></a>.</p>'

/** `alert-rules` → `Alert rules` */
function titleCase(resource: string): string {
  const words = resource.replaceAll(/[_-]/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

interface ApiRow {
  readonly path: string
  readonly method: string
  readonly operation: ApiOperation
}

function operationHtml({ path, method, operation }: ApiRow, resolve: (schema?: Schema) => Schema): string {
  const parameters = (operation.parameters ?? []).map(({ name, in: place, required, description, schema }) => ({
    name,
    type: `${typeOf(resolve(schema))} (${place})`,
    isRequired: required === true,
    text: description ?? resolve(schema).description ?? '',
  }))
  const body = resolve(operation.requestBody?.content?.['application/json']?.schema)
  const fields = Object.entries(body.properties ?? {}).map(([name, schema]) => ({
    name,
    type: typeOf(resolve(schema)),
    isRequired: body.required?.includes(name) === true,
    text: schema.description ?? resolve(schema).description ?? '',
  }))
  const all = [...parameters, ...fields].map(
    ({ name, type, isRequired, text }) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${escapeHtml(type)}${isRequired ? ', required' : ''}</td><td>${escapeHtml(text)}</td></tr>`,
  )
  const table = `<table><thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead><tbody>${all.join('')}</tbody></table>`
  // A link to the id opens the details, because it leads to their content.
  return `<details class="operation"><summary><span class="method">${method}</span> <code>${escapeHtml(path)}</code> <span class="muted">${escapeHtml(textOf(operation))}</span></summary><div id="${escapeHtml(operation.operationId ?? '')}">${all.length > 0 ? table : '<p class="muted">No parameters.</p>'}</div></details>`
}

function typeOf({ type, enum: values, items, anyOf }: Schema): string {
  if (values) return values.map(String).join(' | ')
  if (anyOf) return anyOf.map(typeOf).join(' | ')
  if (items) return `list of ${typeOf(items)}`
  return Array.isArray(type) ? type.join(' | ') : String(type ?? 'object')
}

function escapeHtml(text: string): string {
  return Bun.escapeHTML(text)
}
