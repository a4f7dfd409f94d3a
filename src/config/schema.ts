// The whole configuration file as a schema, and the JSON Schema made from it for editors.
// `bun run src/config/schema.ts --write` renews tollgate.schema.json.

import { z } from 'zod'
import { modelEntrySchema } from '../catalog/entry.ts'
import { parseIpRange } from '../kernel/ip-range.ts'
import { providerEntrySchema } from '../providers/entry.ts'

const gibibyte = 2 ** 30

function optional<Schema extends z.ZodType>(schema: Schema, meaning: string) {
  return schema.optional().describe(meaning)
}

export const onOff = z.union([z.enum(['on', 'off']), z.boolean()], { error: 'expected on or off' })
const ipRange = z.string().refine((text) => parseIpRange(text) !== undefined, {
  error: 'expected an address or a range whose bits after the prefix are 0, such as 10.0.0.0/8',
})

export const serverSchema = z
  .strictObject({
    host: optional(
      z.string().regex(/^[A-Za-z0-9.:_%-]+$/, {
        error: 'expected a host name or address such as 127.0.0.1, without port or brackets',
      }),
      'Address to listen on. Default 127.0.0.1.',
    ),
    port: optional(z.int().min(0).max(65535), 'Port to listen on; 0 = any free one. Default 8080.'),
    data: optional(
      z.string().min(1, { error: 'expected the path of a folder' }),
      'Folder of the embedded database and generated secrets, relative to the working folder. Default ./data.',
    ),
    log: optional(z.enum(['pretty', 'json']), 'Log format. Default: pretty on a terminal, json otherwise.'),
    sandbox: optional(onOff, 'off hides the sandbox provider and its models. Default on.'),
    body_bytes_max: optional(
      z.int().min(1024).max(gibibyte),
      'Largest request body in bytes. Default 33554432 (32 MiB).',
    ),
    drain_seconds: optional(
      z.number().min(0).max(3600),
      'How long a stopping gateway waits for running requests. Default 120.',
    ),
    drain_delay_seconds: optional(
      z.number().min(0).max(60),
      'How long a stopping gateway still takes requests, so that a balancer can notice. Default 5 with PostgreSQL, else 0.',
    ),
    public_url: optional(
      z.url({ protocol: /^https?$/, error: 'expected the address people use, such as https://gate.example.com' }),
      'Where people reach the gateway, for links. Default: where it listens.',
    ),
    requests_retention_days: optional(
      z.int().min(0).max(36_500),
      'How long the request log is kept; 0 = for ever. Charges are always kept. Default 90.',
    ),
    store_responses: optional(
      onOff,
      'on stores responses of /v1/responses whose callers ask for it (store: true), encrypted. Default off.',
    ),
    responses_retention_days: optional(
      z.int().min(1).max(3650),
      'How long stored responses are kept, from 1 to 3650 days. Default 30.',
    ),
    catalog: optional(
      z.enum(['public', 'signed-in']),
      'Who may read the catalog, as pages and as GET /api/catalog. Default public.',
    ),
    local_models: optional(
      onOff,
      'on looks for model servers on the usual ports of this machine at start. Default on.',
    ),
    end_users: optional(
      z.enum(['hashed', 'plain', 'off']),
      'How the end user that a request names is recorded: as a hash, with its id, or not at all. Default hashed.',
    ),
    cors_origins: optional(
      z.array(
        z.string().regex(/^(\*|https?:\/\/[^\s/?#]+|[a-z][a-z0-9+.-]*:\/\/[^\s/?#]*)$/i, {
          error: 'expected an origin such as https://app.example.com, or *',
        }),
      ),
      'Origins of web pages that may call the API from a browser; * = any. Default none.',
    ),
    provider_choice: optional(
      onOff,
      'off ignores what callers say about providers (provider, :floor, :nitro). Default on.',
    ),
    trusted_proxies: optional(
      z.array(ipRange),
      'Proxies whose X-Forwarded-For is believed: addresses and ranges. Default none.',
    ),
  })
  .describe('Settings of the process. A variable of the environment wins over each of them.')

const limit = z.int().min(1).max(1_000_000_000)

const limitsSchema = z
  .strictObject({
    requests_per_minute: optional(limit, 'Requests per minute and key: a burst of that many, refilled evenly.'),
    tokens_per_minute: optional(limit, 'Input and output tokens per minute and key.'),
    concurrent_requests: optional(limit, 'Requests of one key that run at the same time.'),
  })
  .describe('Limits of every key without limits; those left out are unlimited.')

const percentage = z
  .number()
  .min(0)
  .max(100)
  .multipleOf(0.01, { error: 'expected a percentage with at most two decimals' })

const ownKeysSchema = z
  .strictObject({
    fee_percent: optional(
      percentage,
      "What a call on a workspace's own provider key costs, in percent of the model's price. Default 0.",
    ),
    base_urls: optional(z.boolean(), 'Whether a workspace may bring an address with its key. Default false.'),
    allow_hosts: optional(
      z.array(z.string().min(1)),
      'Hosts, addresses and ranges that such an address may have although they are not public.',
    ),
    plain_http: optional(z.boolean(), 'Whether such an address may be http on port 80. Default false.'),
  })
  .describe('Provider keys that workspaces bring themselves.')

const webhooksSchema = z
  .strictObject({
    allow_hosts: optional(
      z.array(z.string().min(1)),
      'Hosts, addresses and ranges that webhooks may have although they are not public, also by http and on any port.',
    ),
  })
  .describe('Webhooks that receive alerts.')

const pricesSchema = z
  .strictObject({
    update_from: optional(
      z.string().min(1, { error: 'expected an address or the path of a file' }),
      'A price list that you trust: an https address, or a file relative to the working folder. Its prices are applied; jumps are held back. Default none.',
    ),
    update_hours: optional(z.int().min(1).max(720), 'How often it is read, in hours. Default 24.'),
  })
  .describe('Regular price updates.')
const usdText = z
  .string()
  .regex(/^[0-9]{1,6}(\.[0-9]{1,2})?$/, { error: 'expected US dollars in quotes, such as "5.00"' })

const paymentsSchema = z
  .strictObject({
    min: optional(usdText, 'The least that one payment may be, such as "5.00". Default "1.00".'),
    max: optional(usdText, 'The most that one payment may be, such as "500.00". Default "10000.00".'),
  })
  .describe('Payments by card, through Stripe.')

const milliseconds = z.int().min(0).max(60_000)

const retriesSchema = z
  .strictObject({
    attempts: optional(
      z.int().min(1).max(10),
      'No retry starts after this many provider calls; 1 = no retries. Default 3.',
    ),
    backoff_ms: optional(
      milliseconds,
      'Upper bound of the first wait, drawn at random below it; doubles with each retry. Default 2000.',
    ),
    total_ms: optional(
      milliseconds,
      'No retry starts later than this after all routes have failed for the first time. Default 8000.',
    ),
  })
  .describe('Retries on the same route when no other is left and the fault may pass.')

const sessionsSchema = z
  .strictObject({
    cache_marks: optional(
      onOff,
      'on places cache marks for callers of Chat Completions and Responses on models that cache only what is marked. Default on.',
    ),
    keep_reasoning: optional(
      onOff,
      'on keeps signed reasoning in memory, sealed, for an hour, for callers of Chat Completions that do not send it back. Default on.',
    ),
  })
  .describe("How agents' conversations are served from turn to turn.")

const mappedRoleSchema = z
  .strictObject({
    group: z.string().min(1).describe('A value of the group claim.'),
    role: z
      .enum(['operator', 'admin', 'member', 'viewer'], { error: 'expected operator, admin, member or viewer' })
      .describe('The role that people in the group have.'),
    workspace: z
      .string()
      .regex(/^ws_/, { error: 'expected the id of a workspace (ws_…)' })
      .optional()
      .describe('Required, except for the role operator.'),
  })
  .refine(({ role, workspace }) => (role === 'operator') === (workspace === undefined), {
    error: 'expected a workspace for every role except operator',
  })

const signInSchema = z
  .strictObject({
    mode: optional(
      z.enum(['invite', 'oidc', 'open'], { error: 'expected invite, oidc or open' }),
      'Who may create an account without an invitation: no one, people of the identity provider, or anyone. Default invite.',
    ),
    opening_credit: optional(
      z.string().regex(/^[0-9]{1,6}(\.[0-9]{1,9})?$/, { error: 'expected US dollars in quotes, such as "5.00"' }),
      'What the workspace of someone who signed up starts with, in US dollars. Default "0".',
    ),
    provider_name: optional(z.string().min(1).max(40), 'The button says "Sign in with …". Default: single sign-on.'),
    allowed_domains: optional(
      z.array(z.string().min(1).toLowerCase()),
      'Domains of e-mail addresses that may sign in with the identity provider. Default: all, if verified.',
    ),
    required_group: optional(z.string().min(1), 'Only people in this group may sign in with the identity provider.'),
    group_claim: optional(z.string().min(1), 'The claim that lists groups. Default groups.'),
    roles: optional(z.array(mappedRoleSchema), 'Roles that groups have, set at every sign-in.'),
  })
  .describe('How people sign in. The identity provider itself is set in the environment.')

/** The sections that are mappings with a fixed set of keys. */
const sections = {
  server: serverSchema,
  limits: limitsSchema,
  own_keys: ownKeysSchema,
  retries: retriesSchema,
  sessions: sessionsSchema,
  prices: pricesSchema,
  webhooks: webhooksSchema,
  payments: paymentsSchema,
  sign_in: signInSchema,
}

export type ServerSection = z.infer<typeof serverSchema>
export type Sections = { readonly [Name in keyof typeof sections]: z.infer<(typeof sections)[Name]> }

export const sectionNames = Object.keys(sections) as (keyof Sections)[]

export function settingsIn(section: keyof Sections): readonly string[] {
  return Object.keys(sections[section].shape)
}

/** A section that is missing has no settings. */
export function sectionsOf(file: { readonly [Name in keyof Sections]?: Sections[Name] | null | undefined }): Sections {
  return Object.fromEntries(sectionNames.map((name) => [name, file[name] ?? {}])) as Sections
}

/** A section with nothing below it, as is left when all its lines are commented out, is the same as no section. */
export const configFileSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; not read.'),
  server: serverSchema.nullish(),
  providers: z
    .array(providerEntrySchema)
    .nullish()
    .describe('Who hosts models. An entry replaces the built-in provider of the same id.'),
  disabled_providers: z
    .array(z.string().min(1))
    .nullish()
    .describe('Ids of providers that are not called, wherever they were enabled, nor with workspaces’ own keys.'),
  models: z
    .array(modelEntrySchema)
    .nullish()
    .describe('Models on offer. An entry replaces the built-in model of the same id.'),
  aliases: z
    .record(z.string().min(1), z.string().min(1))
    .nullish()
    .describe('Further names of models: name to model id. A project can have its own.'),
  limits: limitsSchema.nullish(),
  own_keys: ownKeysSchema.nullish(),
  retries: retriesSchema.nullish(),
  sessions: sessionsSchema.nullish(),
  prices: pricesSchema.nullish(),
  webhooks: webhooksSchema.nullish(),
  payments: paymentsSchema.nullish(),
  sign_in: signInSchema.nullish(),
})

export function configJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(configFileSchema.meta({ title: 'Tollgate configuration' }), { io: 'input' })
}

/** The text of tollgate.schema.json; short lists stay on one line, as the formatter wants them. */
export function renderJsonSchema(): string {
  const text = JSON.stringify(configJsonSchema(), null, 2)
  return `${text.replace(/\[\s+("[^\]{}]*?")\s+\]/g, (_, items: string) => `[${items.replace(/\s*\n\s*/g, ' ')}]`)}\n`
}

if (import.meta.main) {
  const path = `${import.meta.dir}/../../tollgate.schema.json`
  if (process.argv.includes('--write')) await Bun.write(path, renderJsonSchema())
  else process.stdout.write(renderJsonSchema())
}
