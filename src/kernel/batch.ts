// The words for the state of a batch, as the API of OpenAI has them.

export const batchStatuses = [
  'in_progress',
  'finalizing',
  'completed',
  'failed',
  'cancelling',
  'cancelled',
  'expired',
] as const
export type BatchStatus = (typeof batchStatuses)[number]
