// The audit log, the configuration in effect and the OpenAPI document.

import { z } from 'zod'
import { listSchema, pageQuery, time } from './fields.ts'
import { operation } from './operation.ts'

export const auditSchema = z.object({
  sequence: z.number(),
  at: time,
  actor: z.string(),
  action: z.string().describe('What was done to which kind of object: `key.revoke`.'),
  object: z.string().describe('The id of the changed object.'),
  details: z.record(z.string(), z.unknown()),
  request_id: z.string().nullable(),
  hash: z.string().describe('Over this entry and the hash of the previous one.'),
})

const settingSchema = z.object({
  name: z.string().describe('As in the configuration file, or the environment variable if the file has no such name.'),
  value: z.string().describe('Secrets are shown as `set`.'),
  source: z.string().describe('A variable, a line of the file, or `default`.'),
})

export type Setting = z.input<typeof settingSchema>

export const systemOperations = {
  listAudit: operation('listAudit', {
    summary: 'Lists who changed what, newest first.',
    query: pageQuery,
    answer: listSchema(auditSchema),
  }),
  getConfig: operation('getConfig', {
    summary: 'Lists the settings in effect and where each came from. Secrets are shown only as set.',
    answer: listSchema(settingSchema),
  }),
  getOpenApi: operation('getOpenApi', {
    summary: 'Public: this document.',
    public: 'always',
    answer: z.looseObject({ openapi: z.string() }),
  }),
}
