// What others rely on, one line for each promise of docs/reference/stability.md: paths, fields, words, names. `npm run
// interfaces` notes those of a release in test/fixtures/interfaces.txt; the test compares them with what there is now.

import { join } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { openApiDocument } from '../src/api/open-api.ts'
import { operations } from '../src/api/operations.ts'
import { optionsOf } from '../src/cli/command.ts'
import { commands } from '../src/cli/commands/registry.ts'
import { exitCodes } from '../src/cli/refusal.ts'
import { settingVariables, variables } from '../src/config/environment.ts'
import { renderJsonSchema } from '../src/config/schema.ts'
import { ownFields as messagesFields } from '../src/dialects/anthropic-messages/request/parse.ts'
import { supported as geminiFields } from '../src/dialects/gemini/request/parse.ts'
import { supported as embeddingsFields } from '../src/dialects/openai-chat/embeddings.ts'
import { supported as chatFields } from '../src/dialects/openai-chat/request/parse.ts'
import { supportedWithStore as responsesFields } from '../src/dialects/openai-responses/request/parse.ts'
import { surfaces } from '../src/dialects/registry.ts'
import { failureTable } from '../src/kernel/failure.ts'
import { openGatewayMetrics } from './observe/gateway-page.ts'

export const fixture = join(import.meta.dir, 'fixtures/interfaces.txt')

interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly additionalProperties?: JsonSchema | boolean
}

/** A member that must be sent, and one that is in every answer: another of the first kind is a break. */
const needed = 'is required'
const given = 'is always given'

/** A line for each member, type and word that a schema allows. Schemas with a name have lines of their own. */
function membersOf(schema: JsonSchema, at: string, always = needed): string[] {
  const inner = (each: JsonSchema, name: string) => membersOf(each, `${at}${name}`, always)
  if (schema.$ref !== undefined) return [`${at}: ${schema.$ref.split('/').at(-1)}`]
  const words = [...(schema.enum ?? []), ...('const' in schema ? [schema.const] : [])]
  const types = schema.type === undefined ? [] : [schema.type].flat()
  return [
    ...types.map((type) => `${at}: ${type}`),
    ...words.map((word) => `${at} = ${JSON.stringify(word)}`),
    ...[schema.anyOf, schema.oneOf, schema.allOf].flatMap((some) => (some ?? []).flatMap((each) => inner(each, ''))),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, each]) => inner(each, `.${name}`)),
    ...(schema.required ?? []).map((name) => `${at}.${name} ${always}`),
    ...(schema.items ? inner(schema.items, '[]') : []),
    ...(typeof schema.additionalProperties === 'object' ? inner(schema.additionalProperties, '.*') : []),
  ]
}

/** The named schemas that these refer to, directly and through others. */
function namesIn(schemas: readonly JsonSchema[], named: ReadonlyMap<string, JsonSchema>): ReadonlySet<string> {
  const names = new Set<string>()
  const visit = (schema: JsonSchema): void => {
    const name = schema.$ref?.split('/').at(-1)
    if (name !== undefined && !names.has(name)) {
      names.add(name)
      visit(named.get(name) ?? {})
    }
    const { additionalProperties: rest, items, anyOf, oneOf, allOf, properties = {} } = schema
    for (const some of [anyOf, oneOf, allOf, Object.values(properties), items && [items]]) some?.forEach(visit)
    if (typeof rest === 'object') visit(rest)
  }
  schemas.forEach(visit)
  return names
}

interface OpenApiOperation {
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >
}

function managementApi(): string[] {
  const document = openApiDocument(Object.values(operations), manifest.version) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>
    readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
  }
  const named = new Map(Object.entries(document.components.schemas))
  const all = Object.values(document.paths).flatMap((verbs) => Object.values(verbs))
  const sent = namesIn(
    all.flatMap(({ requestBody }) => Object.values(requestBody?.content ?? {}).map(({ schema }) => schema)),
    named,
  )
  const shared = [...named].flatMap(([name, schema]) =>
    membersOf(schema, `management ${name}`, sent.has(name) ? needed : given),
  )
  const own = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).flatMap(([verb, { parameters, requestBody, responses }]) => {
      const name = `management ${verb.toUpperCase()} ${path}`
      const bodies = Object.values(requestBody?.content ?? {})
      const answers = Object.entries(responses).flatMap(([status, { content }]) =>
        status === 'default' ? [] : Object.values(content ?? {}).map(({ schema }) => ({ status, schema })),
      )
      return [
        name,
        ...parameters.map((each) => `${name} ${each.in} ${each.name}${each.required ? ' is required' : ''}`),
        ...bodies.flatMap(({ schema }) => membersOf(schema, `${name} body`)),
        ...answers.flatMap(({ status, schema }) => membersOf(schema, `${name} ${status}`, given)),
      ]
    }),
  )
  return [...shared, ...own]
}

function requestFields(): string[] {
  const fields = {
    chat: chatFields,
    messages: messagesFields,
    responses: responsesFields,
    embeddings: embeddingsFields,
    gemini: geminiFields,
  }
  return Object.entries(fields).flatMap(([api, names]) => [...names].map((name) => `field ${api} ${name}`))
}

/** Every line once, sorted. */
export async function interfaces(): Promise<readonly string[]> {
  const paths = Object.values(surfaces).flatMap((surface) => Object.values('paths' in surface ? surface.paths : {}))
  const readings = await openGatewayMetrics().registry.read()
  const lines = [
    ...paths.map((path) => `path POST /v1${path}`),
    ...requestFields(),
    ...Object.entries(failureTable).map(([code, row]) => `error ${code} ${Object.values(row).join(' ')}`),
    ...managementApi(),
    ...commands.flatMap((definition) => {
      const name = `command ${definition.words.join(' ')}`
      return [name, ...Object.keys(optionsOf(definition)).map((option) => `${name} --${option}`)]
    }),
    ...Object.entries(exitCodes).map(([name, code]) => `exit code ${code} ${name}`),
    ...membersOf(JSON.parse(renderJsonSchema()), 'config'),
    ...[...settingVariables.map(({ name }) => name), ...Object.keys(variables)].map((name) => `variable ${name}`),
    ...readings.flatMap(({ name, type, labels }) => [
      `metric ${name} ${type}`,
      ...labels.map((label) => `metric ${name} {${label}}`),
    ]),
  ]
  return [...new Set(lines)].sort()
}

const asking = /^(.*?)(?:\.[^.\s]+| (?:query|path) \S+) is required$/

/** What programs written for `before` may meet `now`: lines that are gone, and members that something known now needs. */
export function breaks(before: readonly string[], now: readonly string[]): string[] {
  const had = new Set(before)
  const has = new Set(now)
  const gone = before.filter((line) => !has.has(line))
  const more = now.filter((line) => {
    const owner = asking.exec(line)?.[1]
    return owner !== undefined && !had.has(line) && (had.has(owner) || had.has(`${owner}: object`))
  })
  return [...gone.map((line) => `gone: ${line}`), ...more.map((line) => `asks for more: ${line}`)]
}

if (import.meta.main) {
  const lines = await interfaces()
  await Bun.write(fixture, `${lines.join('\n')}\n`)
  process.stdout.write(`${fixture}: ${lines.length} lines\n`)
}
