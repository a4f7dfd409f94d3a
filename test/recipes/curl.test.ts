// The curl recipe, through both surfaces onto both dialects.

import { curl } from './clients.ts'
import { describeClients } from './describe-client.ts'

describeClients([curl])
