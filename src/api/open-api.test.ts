import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { forEachEngine } from '../../test/parts/engines.ts'
import { openManagement } from '../../test/parts/management.ts'
import type { RouteDependencies } from '../http/management/dependencies.ts'
import { managementRoutes } from '../http/management/serve.ts'
import { endpoints } from './endpoints.ts'
import { openApiDocument } from './open-api.ts'
import type { Operation } from './operation.ts'
import { operations as operationsByName } from './operations.ts'

const rows: readonly Operation[] = Object.values(operationsByName)
// As a reader gets it.
const document = JSON.parse(JSON.stringify(openApiDocument(rows, '1.2.3')))

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

test('every endpoint has an operation and a handler', () => {
  const names = Object.keys(endpoints).sort()
  expect(Object.keys(operationsByName).sort()).toEqual(names)
  // Building the table calls none of the dependencies.
  const routes = managementRoutes({} as RouteDependencies)
  expect(routes.map(({ name }) => name as string).sort()).toEqual(names)
  for (const route of routes) {
    const served = [route.run, route.write, route.events, route.download].filter((handler) => handler !== undefined)
    expect([route.name, served.length]).toEqual([route.name, 1])
  }
})

test('every operation is in the document, and nothing else', () => {
  const documented = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`)
  expect(documented.sort()).toEqual(rows.map(({ method, path }) => `${method} ${path}`).sort())
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

test('every body and every answer has a schema, also one that operations share', () => {
  const without = operations.flatMap(({ path, method, operation }) => {
    const { requestBody, responses } = operation as { requestBody?: Json; responses: Record<string, Json> }
    const contents = [requestBody, ...Object.values(responses)].flatMap((each) => Object.values(each?.content ?? {}))
    return contents.every((content) => isObject(content.schema)) ? [] : [`${method} ${path}`]
  })
  expect(without).toEqual([])
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
  for (const { name: operation, body, example } of rows) {
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

test('the reference lists every operation', () => {
  const page = readFileSync(`${import.meta.dir}/../../docs/reference/management-api.md`, 'utf8')
  const missing = rows.map(({ method, path }) => `\`${method} ${path}\``).filter((call) => !page.includes(call))
  expect(missing).toEqual([])
  const named = [...page.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/api\/[^`?\s]*)`/g)].map(
    ([, method, path]) => `${method} ${path}`,
  )
  const known = new Set(rows.map(({ method, path }) => `${method} ${path}`))
  expect(named.filter((call) => !known.has(call))).toEqual([])
})

forEachEngine((engine) => {
  test('the document is served without a token', async () => {
    await using management = await openManagement(engine)
    const { status, body } = await management.ask('GET', '/api/openapi.json', { token: null })
    expect([status, body]).toEqual([200, document])
  })
})
