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

const onOff = z.union([z.enum(['on', 'off']), z.boolean()], { error: 'expected on or off' })
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
    catalog: optional(
      z.enum(['public', 'signed-in']),
      'Who may read the catalog, as pages and as GET /api/catalog. Default public.',
    ),
    local_models: optional(
      onOff,
      'on looks for model servers on the usual ports of this machine at start. Default on.',
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
  .describe('Limits of every key that has none of its own; what is left out is unlimited.')

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

const milliseconds = z.int().min(0).max(60_000)

const retriesSchema = z
  .strictObject({
    attempts: optional(z.int().min(1).max(10), 'Attempts of one request in all; 1 = no retries. Default 3.'),
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

/** A section with nothing below it, as is left when all its lines are commented out, is the same as no section. */
export const configFileSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; not read.'),
  server: serverSchema.nullish(),
  providers: z
    .array(providerEntrySchema)
    .nullish()
    .describe('Who hosts models. An entry replaces the built-in provider of the same id.'),
  models: z
    .array(modelEntrySchema)
    .nullish()
    .describe('Models on offer. An entry replaces the built-in model of the same id.'),
  limits: limitsSchema.nullish(),
  own_keys: ownKeysSchema.nullish(),
  retries: retriesSchema.nullish(),
})

export type ServerSection = z.infer<typeof serverSchema>
export type LimitsSection = z.infer<typeof limitsSchema>
export type OwnKeysSection = z.infer<typeof ownKeysSchema>
export type RetriesSection = z.infer<typeof retriesSchema>

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
