// The filters that lists and streams of requests have in common.

import { z } from 'zod'
import type { KeyId, ProjectId, WorkspaceId } from '../../kernel/ids.ts'
import { idField, must } from './fields.ts'

const outcomes = ['ok', 'failed'] as const

export const requestFilterFields = {
  workspace_id: idField('workspace').optional().describe('Only requests of this workspace.'),
  project_id: idField('project').optional().describe('Only requests of this project.'),
  key_id: idField('key').optional().describe('Only requests of this key.'),
  model: z.string().min(1).max(300).optional().describe('Only requests for this model.'),
  outcome: z
    .enum(outcomes, must('ok or failed'))
    .optional()
    .describe('`failed`: only requests with a `code`; `ok`: only those without.'),
}

export interface RequestFilters {
  readonly workspaceId?: WorkspaceId
  readonly projectId?: ProjectId
  readonly keyId?: KeyId
  readonly model?: string
  readonly outcome?: (typeof outcomes)[number]
}

export function requestFilters(query: {
  readonly workspace_id?: WorkspaceId | undefined
  readonly project_id?: ProjectId | undefined
  readonly key_id?: KeyId | undefined
  readonly model?: string | undefined
  readonly outcome?: (typeof outcomes)[number] | undefined
}): RequestFilters {
  return {
    ...(query.workspace_id !== undefined && { workspaceId: query.workspace_id }),
    ...(query.project_id !== undefined && { projectId: query.project_id }),
    ...(query.key_id !== undefined && { keyId: query.key_id }),
    ...(query.model !== undefined && { model: query.model }),
    ...(query.outcome !== undefined && { outcome: query.outcome }),
  }
}
