// Documentation pages: the repository's Markdown at /docs/…, the reference of the management API at /docs/api, made from its
// OpenAPI document, and a search in both at /docs/search. The texts are ours, so their HTML is trusted.

import { openApiDocument } from '../api/open-api.ts'
import { operations } from '../api/operations.ts'
import { readDocs } from './docs-files.ts'
import { type Passage, passagesOf, searchDocs } from './docs-search.ts'
import type { DocsData, DocsLink, Page } from './page-data.ts'

const apiPath = '/docs/api'
const apiTitle = 'API reference'
const searchPath = '/docs/search'

/** In the order of the menu; a folder that is not named here comes last. */
const groups: readonly (readonly [folder: string, title: string])[] = [
  ['', 'Start'],
  ['recipes', 'Recipes'],
  ['reference', 'Reference'],
  ['operate', 'Operate'],
  ['coming-from', 'Migrate'],
]

/** They come first in their group, in this order; the other pages follow by title. */
const firstPages = ['/docs/first-hour', '/docs/sandbox', '/docs/compatibility', '/docs/errors', '/docs/security']

/** Returns the page at a path; undefined = there is none. */
type FindPage = (path: string, query: URLSearchParams) => Page | undefined

/** The texts are read when the first page is opened. */
export function createDocs(version: string): () => Promise<FindPage> {
  let opened: Promise<FindPage> | undefined
  return () => {
    opened ??= readDocs().then((texts) => openDocs(texts, version))
    return opened
  }
}

function openDocs(texts: ReadonlyMap<string, string>, version: string): FindPage {
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
        return passagesOf(titleOf(text, file), `/docs/${file}`, htmlOf(text, file))
      }),
      ...apiRows(readApi()).map(({ path, method, operation }) => ({
        href: `${apiPath}#${operation.operationId}`,
        page: apiTitle,
        heading: `${method} ${path}`,
        text: textOf(operation),
      })),
    ]
    return passages
  }
  return (path, query) => {
    const name = path.replace(/^\/docs\/?/, '').replace(/\/$/, '')
    const page = (title: string, html: string, more: Pick<DocsData, 'search'> = {}): Page => {
      return { kind: 'docs', title, data: { title, html, path, groups: groupsOfLinks, ...more } }
    }
    if (path === apiPath) return page(apiTitle, apiHtml(readApi()))
    if (path === searchPath) return page('Search', '', { search: searchDocs(readPassages(), query.get('q') ?? '') })
    if (name === '') return page('Documentation', startHtml(groupsOfLinks))
    const file = name.replace(/\.md$/, '')
    const text = texts.get(`${file}.md`)
    return text === undefined ? undefined : page(titleOf(text, file), htmlOf(text, file))
  }
}

function menuOf(texts: ReadonlyMap<string, string>): DocsData['groups'] {
  const folderOf = (path: string) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : '')
  return groups.map(([folder, title]) => {
    const links = [...texts]
      .filter(([path]) => folderOf(path) === folder)
      .map(([path, text]): DocsLink => {
        const file = path.replace(/\.md$/, '')
        return { href: `/docs/${file}`, label: titleOf(text, file) }
      })
      .sort((a, b) => rankOf(a) - rankOf(b) || (a.label < b.label ? -1 : 1))
    const more = folder === 'reference' ? [{ href: apiPath, label: apiTitle }] : []
    return { title, links: [...more, ...links] }
  })
}

function rankOf({ href }: DocsLink): number {
  return firstPages.includes(href) ? firstPages.indexOf(href) : firstPages.length
}

function titleOf(text: string, file: string): string {
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? file
}

/** Headings get ids, and links to other pages lead to them; what is not published is named without a link. */
function htmlOf(text: string, file: string): string {
  const folder = file.includes('/') ? file.slice(0, file.lastIndexOf('/') + 1) : ''
  return (
    Bun.markdown
      .html(text)
      .replace(
        /<(h[1-4])>(.*?)<\/\1>/gs,
        (_, tag: string, inner: string) => `<${tag} id="${idOf(inner)}">${inner}</${tag}>`,
      )
      .replace(/<a href="([^"]*)">(.*?)<\/a>/gs, (whole, href: string, inner: string) => {
        if (/^(?:https?:|#|mailto:)/.test(href)) return whole
        const { pathname, hash } = new URL(href, `http://docs/docs/${folder}`)
        const isPage = pathname.startsWith('/docs/') && pathname.endsWith('.md') && !pathname.includes('/decisions/')
        return isPage ? `<a href="${pathname.replace(/\.md$/, '')}${hash}">${inner}</a>` : inner
      })
      .replace(/<img [^>]*>/g, '')
      // Long names in tables break after a separator.
      .replace(/(?<=<td>.*?<code>)[^<]+(?=<\/code>)/g, (name) => name.replace(/(?<=\w)[_./](?=[\w{])/g, '$&<wbr>'))
      // They scroll, and the keyboard must be able to.
      .replaceAll(/<(pre|table)>/g, '<$1 tabindex="0">')
  )
}

/** As GitHub makes them, so that links with a fragment work. */
function idOf(inner: string): string {
  return inner
    .replace(/<[^<>]+>|&\w+;/g, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function startHtml(all: DocsData['groups']): string {
  const sections = all.map(({ title, links }) => {
    const items = links.map(({ href, label }) => `<li><a href="${href}">${escapeHtml(label)}</a></li>`).join('')
    return `<h2>${title}</h2><ul>${items}</ul>`
  })
  return `<h1>Documentation</h1>${sections.join('')}`
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
    return `<h2 id="${escapeHtml(resource)}">${escapeHtml(resource.replaceAll('_', ' '))}</h2>${items}`
  })
  const intro =
    '<p>The management API changes what the gateway knows: workspaces, projects, keys, money, people. Authenticate with <code>Authorization: Bearer</code> and the management token or a personal token. The machine-readable document is <a href="/api/openapi.json"><code>/api/openapi.json</code></a>.</p>'
  return `<h1>${apiTitle}</h1>${intro}${sections.join('')}`
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
