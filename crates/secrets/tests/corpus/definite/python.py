client = OpenAI(api_key="⟦sk<|>-NOnY8IN4CaMWbc<|>TFrXu9T3BlbkFJ1a0RSg7MS6Z8_TBQ2oWV⟧")
anthropic = Anthropic(api_key='⟦sk<|>-ant-admin10-pZlLqsVwBAfe5y41<|>rIEM-i8VNUPl9SmEEoWL2HyY5fTbryObD3b5574yRpvBpK0ZrXOlf-UkctmNhZxO⟧')
print("hello")
