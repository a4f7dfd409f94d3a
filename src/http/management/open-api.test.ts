import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { openManagement } from '../../../test/parts/management.ts'
import { Failure } from '../../kernel/failure.ts'
import { openApiDocument } from './open-api.ts'
import { managementRoutes, type RouteDependencies } from './route-table.ts'

// Only the rows are read here; nothing of what they would need is called.
const checkout: NonNullable<RouteDependencies['checkout']> = async () => new Failure('NOT_FOUND', 'unused')
const routes = managementRoutes({ checkout } as RouteDependencies)
// As a reader gets it.
const document = JSON.parse(JSON.stringify(openApiDocument(routes, '1.2.3')))

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

/** Every object in the document. */
function everyObject(value: unknown): Json[] {
  if (!isObject(value)) return []
  return [value, ...Object.values(value).flatMap(everyObject)]
}

const operations = Object.entries(document.paths as Json).flatMap(([path, methods]) =>
  Object.entries(methods as Record<string, Json>).map(([method, operation]) => ({ path, method, operation })),
)

test('every call is in the document, and nothing else', () => {
  const documented = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`)
  expect(documented.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort())
  expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } })
})

test('operation ids are unique, and every reference leads somewhere', () => {
  const ids = operations.map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
  const references = everyObject(document).flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : []))
  expect(references.length).toBeGreaterThan(10)
  for (const reference of new Set(references)) {
    const names = reference.replace(/^#\//, '').split('/')
    const found = names.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), document)
    expect([reference, isObject(found)]).toEqual([reference, true])
  }
  expect(everyObject(document).filter((value) => '$id' in value || '$schema' in value || '$defs' in value)).toEqual([])
})

test('every name in a path is a required parameter, and POST alone takes a key', () => {
  for (const { path, method, operation } of operations) {
    const parameters = operation.parameters as Json[]
    const inPath = parameters.filter((parameter) => parameter.in === 'path' && parameter.required === true)
    expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? [])
    expect(parameters.some(({ name }) => name === 'Idempotency-Key')).toBe(method === 'post')
    expect(operation.summary).toBeString()
    expect(operation.responses).toHaveProperty('default')
  }
})

test('only the catalog and the document itself are public', () => {
  const open = operations.filter(({ operation }) => Array.isArray(operation.security))
  expect(open.map(({ path }) => path).sort()).toEqual(['/api/catalog', '/api/openapi.json'])
})

test('bodies refuse what they do not name, and their examples pass', () => {
  for (const { operation, body, example } of routes) {
    if (!body) continue
    expect([operation, body.safeParse({ 'no such field': 1 }).success]).toEqual([operation, false])
    if (example !== undefined) expect([operation, body.safeParse(example).success]).toEqual([operation, true])
    else expect([operation, body.safeParse({}).success]).toEqual([operation, true])
  }
  const { requestBody } = document.paths['/api/workspaces/{id}/topups'].post
  expect(requestBody.required).toBe(true)
  const { schema } = requestBody.content['application/json']
  expect(schema).toMatchObject({ required: ['amount'], additionalProperties: false })
  expect(schema.properties.amount).toMatchObject({ type: 'string' })
  const { schema: keys } = document.paths['/api/projects/{id}/keys'].post.requestBody.content['application/json']
  expect(JSON.stringify(keys.properties.limits)).toContain('#/components/schemas/Limits')
})

test('the reference has every call', () => {
  const page = readFileSync(`${import.meta.dir}/../../../docs/reference/management-api.md`, 'utf8')
  const missing = routes.map(({ method, path }) => `\`${method} ${path}\``).filter((call) => !page.includes(call))
  expect(missing).toEqual([])
  const named = [...page.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/api\/[^`?\s]*)`/g)].map(
    ([, method, path]) => `${method} ${path}`,
  )
  const known = new Set(routes.map(({ method, path }) => `${method} ${path}`))
  expect(named.filter((call) => !known.has(call))).toEqual([])
})

forEachEngine((engine) => {
  test('the document is served to everybody', async () => {
    await using management = await openManagement(engine, { checkout })
    const { status, body } = await management.ask('GET', '/api/openapi.json', { token: null })
    expect([status, body]).toEqual([200, document])
  })
})
