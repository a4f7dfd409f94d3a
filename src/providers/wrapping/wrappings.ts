// Every form of a dialect that a host has made, by its id.

import type { WrappingId } from '../provider.ts'
import { invokeModel } from './invoke-model.ts'
import { rawPredict } from './raw-predict.ts'
import type { Wrapping } from './wrapping.ts'

export const wrappings: Readonly<Record<WrappingId, Wrapping>> = {
  'invoke-model': invokeModel,
  'raw-predict': rawPredict,
}
