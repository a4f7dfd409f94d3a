import { expect, test } from 'bun:test'
import { knownVariables } from './environment.ts'
import { renewReference } from './reference.ts'
import { configJsonSchema, renderJsonSchema } from './schema.ts'

const rootFolder = `${import.meta.dir}/../..`
const committed = await Bun.file(`${rootFolder}/tollgate.schema.json`).text()
const reference = await Bun.file(`${rootFolder}/docs/reference/configuration.md`).text()

type Node = Readonly<Record<string, unknown>>

/** Every key a file may contain, with the schema of its value. */
function namedKeys(node: unknown): { readonly key: string; readonly schema: Node }[] {
  if (typeof node !== 'object' || node === null) return []
  const own = 'properties' in node ? Object.entries(node.properties as Record<string, Node>) : []
  const inner = Object.entries(node).flatMap(([name, value]) =>
    name === 'properties' ? Object.values(value as object).flatMap(namedKeys) : namedKeys(value),
  )
  return [...own.map(([key, schema]) => ({ key, schema })), ...inner]
}

test('tollgate.schema.json matches the code (update: bun run src/config/reference.ts)', () => {
  expect(committed).toBe(renderJsonSchema())
})

test('the tables of the reference match the code (update: bun run src/config/reference.ts)', () => {
  expect(renewReference(reference)).toBe(reference)
})

test('the schema has the sections and refuses other keys', () => {
  const schema = configJsonSchema()
  expect(Object.keys(schema.properties ?? {}).sort()).toEqual(
    '$schema alerts aliases batches bills content_export disabled_providers limits models own_keys payments policies prices providers reconcile retries server sessions sign_in webhooks'.split(
      ' ',
    ),
  )
  expect(schema.additionalProperties).toBe(false)
})

test('every key has a description for editors', () => {
  const keys = namedKeys(configJsonSchema())
  expect(keys.length).toBeGreaterThan(30)
  const described = (schema: Node): boolean =>
    'description' in schema || (Array.isArray(schema.anyOf) && schema.anyOf.some(described))
  expect(keys.filter(({ schema }) => !described(schema)).map(({ key }) => key)).toEqual([])
})

test('the reference mentions every key and every variable', () => {
  const names = [...namedKeys(configJsonSchema()).map(({ key }) => key), ...knownVariables]
  // The table of variables names a setting of `server` with its section.
  const isNamed = (name: string) => reference.includes(`\`${name}\``) || reference.includes(`\`server.${name}\``)
  const missing = [...new Set(names)].filter((name) => !isNamed(name))
  expect(missing).toEqual([])
})

test('the reference names no TOLLGATE_ variable that does not exist', () => {
  const named = [...new Set(reference.match(/TOLLGATE_[A-Z_]+/g))]
  expect(named.filter((name) => !knownVariables.includes(name))).toEqual([])
})
